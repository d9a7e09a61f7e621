#include "datasets/recall/segments.h"

namespace replayeval::datasets::recall {

Segments statement(const std::string& text, const std::string& value, std::int64_t fact) {
  return {{Part::statement, text, -1}, {Part::value, value, fact}, {Part::stop, ".", -1}};
}

Segments question(const std::string& text, const std::string& value, std::int64_t fact) {
  return {{Part::question, text, -1}, {Part::answer, value, fact}, {Part::stop, ".", -1}};
}

std::string join(const Segments& segments) {
  std::string text;
  for (const Segment& segment : segments) {
    if (!text.empty() && segment.part != Part::stop) text += ' ';
    text += segment.text;
  }
  return text;
}

std::int64_t size_of(const Segments& segments, const Count& count) {
  std::int64_t size = 0;
  for (const Segment& segment : segments) size += count(segment);
  return size;
}

void append(Segments& to, const Segments& from) { to.insert(to.end(), from.begin(), from.end()); }

}  // namespace replayeval::datasets::recall
