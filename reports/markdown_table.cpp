#include "reports/markdown_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <string_view>

namespace replayeval::reports {

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (std::string_view("*_`|<\\[]").find(c) != std::string_view::npos) out += '\\';
    out += c == '\n' || c == '\r' ? ' ' : c;
  }
  return out;
}

std::string code(const std::string& text) {
  std::string inner;
  for (const char c : text) {
    if (c == '|') inner += '\\';  // a table's cell ends at a bare pipe, even inside code
    inner += c == '\n' || c == '\r' ? ' ' : c;
  }
  return inner.find('`') == std::string::npos ? "`" + inner + "`" : "`` " + inner + " ``";
}

MarkdownTable::MarkdownTable(std::vector<std::string> titles, std::vector<std::size_t> left) : columns_(titles.size()) {
  std::string rule;
  for (std::size_t c = 0; c < titles.size(); ++c) {
    const bool to_the_left = c == 0 || std::find(left.begin(), left.end(), c) != left.end();
    text_ += "| " + titles[c] + " ";
    rule += to_the_left ? "|:--" : "|--:";
  }
  text_ += "|\n" + rule + "|\n";
}

void MarkdownTable::add_row(const std::vector<std::string>& cells) {
  if (cells.size() != columns_) {
    throw std::invalid_argument(fmt::format("table: a row of {} cells; expected {}", cells.size(), columns_));
  }
  for (const std::string& cell : cells) text_ += "| " + cell + " ";
  text_ += "|\n";
  ++rows_;
}

}  // namespace replayeval::reports
