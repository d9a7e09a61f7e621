#include "reports/html/blocks.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <stdexcept>
#include <utility>
#include <variant>

#include "reports/html/markup.h"

namespace replayeval::reports::html {
namespace {

constexpr std::size_t longest_line = 48;  // characters; cells with more of them may break

const char* class_of(Tint tint) {
  switch (tint) {
    case Tint::good:
      return "good";
    case Tint::warning:
      return "warning";
    case Tint::bad:
      return "bad";
    case Tint::dim:
      return "neutral";
    case Tint::none:
    case Tint::bold:
      break;
  }
  return "";
}

std::string span_of(const Span& span) {
  switch (span.mark) {
    case Mark::code:
      return text_element("code", {}, span.text);
    case Mark::emphasis:
      return text_element("em", {}, span.text);
    case Mark::strong:
      return text_element("strong", {}, span.text);
    case Mark::plain:
      break;
  }
  return escaped(span.text);
}

std::string cell_of(const Table& table, std::size_t column, const Text& text, bool in_head) {
  std::string css_class = table.to_the_left(column) ? "left" : "";
  if (!in_head && column > 0 && table.to_the_left(column) && display_width(text.plain()) > longest_line)
    css_class += " prose";
  if (text.tint() != Tint::none) css_class += std::string(" ") + class_of(text.tint());
  Attributes attributes;
  if (!css_class.empty()) attributes.emplace_back("class", css_class);
  if (in_head) attributes.emplace_back("scope", "col");
  if (!in_head && column == 0) attributes.emplace_back("scope", "row");
  return element(in_head || column == 0 ? "th" : "td", attributes, text_of(text));
}

std::string row_of(const Table& table, const std::vector<Text>& cells, bool in_head) {
  std::string markup;
  for (std::size_t c = 0; c < cells.size(); ++c) markup += cell_of(table, c, cells[c], in_head);
  return "<tr>" + markup + "</tr>\n";
}

struct Writer {
  std::string operator()(const Heading& heading) const {
    return text_element(fmt::format("h{}", heading.level + 1), {}, heading.text) + "\n";
  }
  std::string operator()(const Paragraph& paragraph) const { return element("p", {}, text_of(paragraph.text)) + "\n"; }
  std::string operator()(const Bullets& bullets) const {
    std::string items;
    bool tinted = false;
    for (const Text& item : bullets.items) {
      const std::string css_class = class_of(item.tint());
      tinted = tinted || !css_class.empty();
      items += element("li", css_class.empty() ? Attributes{} : Attributes{{"class", css_class}}, text_of(item));
    }
    return element("ul", tinted ? Attributes{{"class", "findings"}} : Attributes{}, items) + "\n";
  }
  std::string operator()(const Table& table) const { return table_of(table); }
  std::string operator()(const Verbatim& verbatim) const {
    return "<div class=\"scroll\" tabindex=\"0\">" + text_element("pre", {}, verbatim.text) + "</div>\n";
  }
};

}  // namespace

std::string text_of(const Text& text) {
  std::string markup;
  for (const Span& span : text.spans()) markup += span_of(span);
  return markup;
}

std::string table_of(const Table& table) {
  std::string body;
  for (const std::vector<Text>& row : table.rows()) body += row_of(table, row, false);
  constexpr std::size_t narrow = 10;  // columns; on paper the words of their titles stay whole
  return std::string("<div class=\"scroll\" tabindex=\"0\"><table") +
         (table.titles().size() <= narrow ? " class=\"narrow\"" : "") + ">\n<thead>" +
         row_of(table, table.titles(), true) + "</thead>\n<tbody>\n" + body + "</tbody>\n</table></div>\n";
}

std::string blocks(const Blocks& blocks) {
  std::string markup;
  for (const Block& block : blocks) markup += std::visit(Writer(), block);
  return markup;
}

std::vector<Part> parts_of(Blocks blocks) {
  std::vector<Part> parts;
  for (Block& block : blocks) {
    if (const auto* heading = std::get_if<Heading>(&block)) {
      parts.push_back({heading->text, {}});
      continue;
    }
    if (parts.empty()) throw std::invalid_argument("a section begins with no heading");
    parts.back().blocks.push_back(std::move(block));
  }
  return parts;
}

std::string folded(const std::string& summary, const std::string& markup) {
  if (markup.empty()) return "";
  return "<details>" + text_element("summary", {}, summary) + "\n" + markup + "</details>\n";
}

}  // namespace replayeval::reports::html
