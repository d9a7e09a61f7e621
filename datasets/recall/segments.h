// A recall document before it becomes token ids: parts of text, joined by single spaces, that say what they are for.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace replayeval::datasets::recall {

enum class Part : std::uint8_t {
  filler,
  statement,  // of a fact, up to its value
  value,      // what a fact states
  question,   // up to the answer
  answer,     // what was asked for
  stop,       // a full stop: no space before it
};

struct Segment {
  Part part = Part::filler;
  std::string text;
  std::int64_t fact = -1;  // of values and answers: an answer is what the values of the same fact led to
};

using Segments = std::vector<Segment>;

// "<text> <value>." for templates that end in " {v}": the statement, the value, the stop.
Segments statement(const std::string& text, const std::string& value, std::int64_t fact);
Segments question(const std::string& text, const std::string& value, std::int64_t fact);

// The document's text.
std::string join(const Segments& segments);

// Tokens of a segment where it stands.
using Count = std::function<std::int64_t(const Segment&)>;
std::int64_t size_of(const Segments& segments, const Count& count);

void append(Segments& to, const Segments& from);

}  // namespace replayeval::datasets::recall
