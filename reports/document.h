// What a report says, without the markup of any format. Sections are written once as blocks; Markdown and HTML (and
// whatever comes after) each know how to show a block.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "reports/text_table.h"

namespace replayeval::reports {

enum class Mark : std::uint8_t { plain, code, emphasis, strong };

struct Span {
  std::string text;  // as it is: formats escape it
  Mark mark = Mark::plain;
};

// A line of text. Whatever comes from results is plain or code; only prose() reads marks out of its argument.
class Text {
 public:
  Text() = default;
  Text(std::string text, Mark mark = Mark::plain);     // NOLINT(google-explicit-constructor): a string is a text
  Text(const char* text) : Text(std::string(text)) {}  // NOLINT(google-explicit-constructor)

  Text& operator+=(const Text& more);
  const std::vector<Span>& spans() const { return spans_; }
  bool empty() const { return spans_.empty(); }
  std::string plain() const;  // without marks

  Text with(Tint tint) const;  // of all of it, where the format has colours
  Tint tint() const { return tint_; }

 private:
  std::vector<Span> spans_;  // none of them empty
  Tint tint_ = Tint::none;
};

Text operator+(Text left, const Text& right);
Text code(std::string text);
Text strong(std::string text);
// Our own sentences: `code`, *emphasis* and **strong**. Throws std::invalid_argument on a mark that is not closed.
Text prose(std::string_view marked);

struct Heading {
  int level = 2;
  std::string text;
};

struct Paragraph {
  Text text;
};

struct Bullets {
  std::vector<Text> items;
};

class Table {
 public:
  // The first column is aligned left, the others right; `left` names more columns (by number) to align left.
  explicit Table(std::vector<Text> titles, std::vector<std::size_t> left = {});
  void add_row(std::vector<Text> cells);  // throws std::invalid_argument on another number of cells
  bool empty() const { return rows_.empty(); }

  const std::vector<Text>& titles() const { return titles_; }
  const std::vector<std::vector<Text>>& rows() const { return rows_; }
  bool to_the_left(std::size_t column) const;

 private:
  std::vector<Text> titles_;
  std::vector<std::size_t> left_;
  std::vector<std::vector<Text>> rows_;
};

struct Verbatim {
  std::string text;      // ends with a newline
  std::string language;  // json, text
};

using Block = std::variant<Heading, Paragraph, Bullets, Table, Verbatim>;
using Blocks = std::vector<Block>;

void append(Blocks& blocks, Blocks more);

}  // namespace replayeval::reports
