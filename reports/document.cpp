#include "reports/document.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <stdexcept>
#include <utility>

namespace replayeval::reports {
namespace {

struct Delimiter {
  std::string_view sign;
  Mark mark;
};

constexpr std::array<Delimiter, 3> delimiters{{{"**", Mark::strong}, {"*", Mark::emphasis}, {"`", Mark::code}}};

const Delimiter* delimiter_at(std::string_view text) {
  const auto found = std::find_if(delimiters.begin(), delimiters.end(),
                                  [&](const Delimiter& delimiter) { return text.starts_with(delimiter.sign); });
  return found == delimiters.end() ? nullptr : &*found;
}

}  // namespace

Text::Text(std::string text, Mark mark) {
  if (!text.empty()) spans_.push_back({std::move(text), mark});
}

Text& Text::operator+=(const Text& more) {
  const std::vector<Span> added = more.spans_;  // `more` may be this text
  spans_.insert(spans_.end(), added.begin(), added.end());
  return *this;
}

std::string Text::plain() const {
  std::string text;
  for (const Span& span : spans_) text += span.text;
  return text;
}

Text Text::with(Tint tint) const {
  Text text = *this;
  text.tint_ = tint;
  return text;
}

Text operator+(Text left, const Text& right) { return left += right; }

Text code(std::string text) { return {std::move(text), Mark::code}; }

Text strong(std::string text) { return {std::move(text), Mark::strong}; }

Text prose(std::string_view marked) {
  Text text;
  while (!marked.empty()) {
    if (const Delimiter* delimiter = delimiter_at(marked)) {
      const std::size_t begin = delimiter->sign.size(), end = marked.find(delimiter->sign, begin);
      if (end == std::string_view::npos)
        throw std::invalid_argument(fmt::format("prose: '{}' is not closed", delimiter->sign));
      text += Text(std::string(marked.substr(begin, end - begin)), delimiter->mark);
      marked.remove_prefix(end + begin);
      continue;
    }
    const std::size_t end = std::min(marked.find_first_of("*`"), marked.size());
    text += Text(std::string(marked.substr(0, end)));
    marked.remove_prefix(end);
  }
  return text;
}

Table::Table(std::vector<Text> titles, std::vector<std::size_t> left)
    : titles_(std::move(titles)), left_(std::move(left)) {}

void Table::add_row(std::vector<Text> cells) {
  if (cells.size() != titles_.size())
    throw std::invalid_argument(fmt::format("table: a row of {} cells; expected {}", cells.size(), titles_.size()));
  rows_.push_back(std::move(cells));
}

bool Table::to_the_left(std::size_t column) const {
  return column == 0 || std::find(left_.begin(), left_.end(), column) != left_.end();
}

void append(Blocks& blocks, Blocks more) {
  blocks.insert(blocks.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
}

}  // namespace replayeval::reports
