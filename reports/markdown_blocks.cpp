#include "reports/markdown_blocks.h"

#include <string_view>
#include <variant>

namespace replayeval::reports::markdown {
namespace {

// Where the bracket that opens at `begin` closes, if the two are an interval's and cannot begin a link.
std::size_t end_of_interval(const std::string& text, std::size_t begin) {
  const std::size_t end = text.find_first_of("[]", begin + 1);
  if (end == std::string::npos || text[end] == '[') return std::string::npos;
  const bool link = end + 1 < text.size() && std::string_view("([:").find(text[end + 1]) != std::string_view::npos;
  return link ? std::string::npos : end;
}

std::string escaped(const std::string& text) {
  std::string out;
  std::size_t interval_end = std::string::npos;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const bool opens = c == '[' && (interval_end = end_of_interval(text, i)) != std::string::npos;
    const bool closes = c == ']' && i == interval_end;
    if (!opens && !closes && std::string_view("*_`|<\\[]").find(c) != std::string_view::npos) out += '\\';
    out += c == '\n' || c == '\r' ? ' ' : c;
  }
  return out;
}

std::string code_span(const std::string& text) {
  std::string inner;
  for (const char c : text) {
    if (c == '|') inner += '\\';  // a table's cell ends at a bare pipe, even inside code
    inner += c == '\n' || c == '\r' ? ' ' : c;
  }
  return inner.find('`') == std::string::npos ? "`" + inner + "`" : "`` " + inner + " ``";
}

std::string span_text(const Span& span) {
  switch (span.mark) {
    case Mark::code:
      return code_span(span.text);
    case Mark::emphasis:
      return "*" + escaped(span.text) + "*";
    case Mark::strong:
      return "**" + escaped(span.text) + "**";
    case Mark::plain:
      break;
  }
  return escaped(span.text);
}

std::string row_text(const std::vector<Text>& cells) {
  std::string text;
  for (const Text& cell : cells) text += "| " + text_of(cell) + " ";
  return text + "|\n";
}

struct Writer {
  std::string operator()(const Heading& heading) const {
    return std::string(static_cast<std::size_t>(heading.level), '#') + " " + escaped(heading.text) + "\n";
  }
  std::string operator()(const Paragraph& paragraph) const { return text_of(paragraph.text) + "\n"; }
  std::string operator()(const Bullets& bullets) const {
    std::string text;
    for (const Text& item : bullets.items) text += "- " + text_of(item) + "\n";
    return text;
  }
  std::string operator()(const Table& table) const {
    std::string text = row_text(table.titles());
    for (std::size_t c = 0; c < table.titles().size(); ++c) text += table.to_the_left(c) ? "|:--" : "|--:";
    text += "|\n";
    for (const std::vector<Text>& row : table.rows()) text += row_text(row);
    return text;
  }
  std::string operator()(const Verbatim& verbatim) const {
    return "```" + verbatim.language + "\n" + verbatim.text + "```\n";
  }
};

}  // namespace

std::string text_of(const Text& text) {
  std::string out;
  for (const Span& span : text.spans()) out += span_text(span);
  return out;
}

std::string blocks(const Blocks& blocks) {
  std::string text;
  for (const Block& block : blocks) text += (text.empty() ? "" : "\n") + std::visit(Writer(), block);
  return text;
}

}  // namespace replayeval::reports::markdown
