// A Markdown (GitHub flavour) table; pipes and line breaks in cells are escaped.
#pragma once

#include <string>
#include <vector>

namespace replayeval::reports {

class MarkdownTable {
 public:
  // The first column is aligned left, the others right; `left` names more columns (by number) to align left.
  explicit MarkdownTable(std::vector<std::string> titles, std::vector<std::size_t> left = {});
  void add_row(const std::vector<std::string>& cells);  // throws std::invalid_argument on another number of cells
  bool empty() const { return rows_ == 0; }
  std::string text() const { return text_; }  // ends with a newline

 private:
  std::size_t columns_;
  std::size_t rows_ = 0;
  std::string text_;
};

std::string escaped(const std::string& text);  // for a cell or running text: * _ ` | < \ and line breaks
std::string code(const std::string& text);     // `text`, whatever is in it

}  // namespace replayeval::reports
