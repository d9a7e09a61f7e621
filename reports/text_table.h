// A table of text with aligned columns that fits a width.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace replayeval::reports {

enum class Align : std::uint8_t { left, right };
enum class Tint : std::uint8_t { none, dim, bold, good, warning, bad };

struct Column {
  std::string title;
  Align align = Align::right;
  int importance = 0;  // where the table is too wide, the column with the smallest importance goes first; 0 never goes
};

struct Cell {
  std::string text;
  Tint tint = Tint::none;
};

class TextTable {
 public:
  explicit TextTable(std::vector<Column> columns) : columns_(std::move(columns)) {}
  bool empty() const { return rows_.empty(); }  // a head alone
  void add_row(std::vector<Cell> cells);        // one cell a column; throws std::invalid_argument otherwise

  // Lines end with a newline and are at most `width` columns, unless the columns that never go need more after the
  // first column has been shortened (with "…") as far as 12 columns.
  std::string render(int width, bool colour) const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<Cell>> rows_;
};

std::size_t display_width(const std::string& text);  // columns on a terminal of UTF-8 text without wide characters
std::string tinted(const std::string& text, Tint tint, bool colour);
// Breaks at spaces so that lines have at most `width` columns; lines after the first begin with `indent` spaces.
std::string wrapped(const std::string& text, int width, int indent);

}  // namespace replayeval::reports
