#include "reports/latex/markup.h"

#include <fmt/format.h>
#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <regex>
#include <string_view>
#include <utility>

namespace replayeval::reports::latex {
namespace {

struct Glyph {
  std::string_view text, latex;
};
// What reports write beyond ASCII, and what TeX reads as markup.
constexpr std::array glyphs = {Glyph{"\\", "\\textbackslash{}"},
                               Glyph{"{", "\\{"},
                               Glyph{"}", "\\}"},
                               Glyph{"$", "\\$"},
                               Glyph{"&", "\\&"},
                               Glyph{"#", "\\#"},
                               Glyph{"%", "\\%"},
                               Glyph{"_", "\\_"},
                               Glyph{"^", "\\textasciicircum{}"},
                               Glyph{"~", "\\textasciitilde{}"},
                               Glyph{"<", "$<$"},
                               Glyph{">", "$>$"},
                               Glyph{"|", "$|$"},
                               Glyph{"\"", "''"},
                               Glyph{"Δ", "$\\Delta$"},
                               Glyph{"×", "$\\times$"},
                               Glyph{"±", "$\\pm$"},
                               Glyph{"·", "$\\cdot$"},
                               Glyph{"−", "$-$"},
                               Glyph{"–", "--"},
                               Glyph{"…", "\\dots{}"},
                               Glyph{"µ", "$\\mu$"},
                               Glyph{"≤", "$\\leq$"},
                               Glyph{"≥", "$\\geq$"},
                               Glyph{"→", "$\\to$"}};

// One character from `begin` on: its bytes, and how TeX writes it.
std::pair<std::size_t, std::string> character(const std::string& text, std::size_t begin) {
  for (const Glyph& glyph : glyphs)
    if (text.compare(begin, glyph.text.size(), glyph.text) == 0) return {glyph.text.size(), std::string(glyph.latex)};
  utf8proc_int32_t point = 0;
  const auto* bytes = reinterpret_cast<const utf8proc_uint8_t*>(text.data()) + begin;
  const utf8proc_ssize_t size = utf8proc_iterate(bytes, static_cast<utf8proc_ssize_t>(text.size() - begin), &point);
  if (size <= 0) return {1, "?"};
  const auto length = static_cast<std::size_t>(size);
  if (point < 0x20) return {length, " "};
  if (point < 0x7F || (point >= 0xC0 && point < 0x180 && point != 0xD7 && point != 0xF7))  // letters with accents
    return {length, text.substr(begin, length)};
  return {length, fmt::format("U+{:04X}", point)};  // no font of a plain installation has it
}

std::string characters(const std::string& text) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const auto [size, latex] = character(text, at);
    out += latex;
    at += size;
  }
  return out;
}

// "-1.6e-06" and "+0.40": a sign that belongs to a number, and powers of ten.
const std::regex& number() {
  static const std::regex expression(R"((^|[\s\[(])([+-]?)(\d[\d.,]*)(?:e([+-]?)0*(\d+))?(?=$|[\s\],;:)%×–]))");
  return expression;
}

std::string number_text(const std::smatch& match) {
  const std::string sign = match[2].str(), power = match[5].str();
  if (power.empty()) return match[1].str() + (sign.empty() ? "" : "$" + sign + "$") + match[3].str();
  const std::string exponent = (match[4].str() == "-" ? "-" : "") + power;
  return fmt::format("{}${}{}\\times10^{{{}}}$", match[1].str(), sign, match[3].str(), exponent);
}

std::string row(const std::vector<Text>& cells) {
  std::string text;
  for (const Text& cell : cells) text += (text.empty() ? "" : " & ") + text_of(cell);
  return text + " \\\\\n";
}

// Characters of a line, all columns at their widest.
std::size_t line_width(const Table& table) {
  std::size_t width = 0;
  for (std::size_t c = 0; c < table.titles().size(); ++c) {
    std::size_t widest = display_width(table.titles()[c].plain());
    for (const std::vector<Text>& row : table.rows()) widest = std::max(widest, display_width(row[c].plain()));
    width += widest + 2;
  }
  return width;
}

std::string csv_cell(const std::string& text) {
  if (text.find_first_of(",\"\n\r") == std::string::npos) return text;
  std::string out = "\"";
  for (const char c : text) out += c == '"' ? std::string("\"\"") : std::string(1, c);
  return out + "\"";
}

std::string csv_row(const std::vector<Text>& cells) {
  std::string line;
  for (std::size_t c = 0; c < cells.size(); ++c) line += (c == 0 ? "" : ",") + csv_cell(cells[c].plain());
  return line + "\r\n";
}

}  // namespace

std::string escaped(const std::string& text) {
  std::string out;
  std::string rest = text;
  for (std::smatch match; std::regex_search(rest, match, number()); rest = match.suffix())
    out += characters(match.prefix()) + number_text(match);
  return out + characters(rest);
}

std::string text_of(const Text& text) {
  std::string out;
  for (const Span& span : text.spans()) {
    if (span.mark == Mark::plain) out += escaped(span.text);
    if (span.mark == Mark::code) out += "\\texttt{" + characters(span.text) + "}";
    if (span.mark == Mark::emphasis) out += "\\emph{" + escaped(span.text) + "}";
    if (span.mark == Mark::strong) out += "\\textbf{" + escaped(span.text) + "}";
  }
  return out;
}

std::string fragment(const PaperTable& table) {
  const char* environment = line_width(table.table) > one_column ? "table*" : "table";
  std::string alignment;
  for (std::size_t c = 0; c < table.table.titles().size(); ++c) alignment += table.table.to_the_left(c) ? 'l' : 'r';
  std::string rows;
  for (const std::vector<Text>& cells : table.table.rows()) rows += row(cells);
  return fmt::format(
      "% For a document with \\usepackage{{booktabs}} and \\usepackage{{graphicx}}.\n"
      "\\providecommand{{\\replayevalfit}}[1]{{\\sbox0{{#1}}\\ifdim\\wd0>\\linewidth"
      "\\resizebox{{\\linewidth}}{{!}}{{\\usebox0}}\\else\\usebox0\\fi}}\n"
      "\\begin{{{0}}}\n\\centering\\small\n\\caption{{{1}}}\n\\label{{tab:{2}}}\n"
      "\\replayevalfit{{\\begin{{tabular}}{{{3}}}\n\\toprule\n{4}\\midrule\n{5}\\bottomrule\n\\end{{tabular}}}}\n"
      "\\end{{{0}}}\n",
      environment, escaped(table.caption), table.name, alignment, row(table.table.titles()), rows);
}

std::string csv(const Table& table) {
  std::string text = csv_row(table.titles());
  for (const std::vector<Text>& cells : table.rows()) text += csv_row(cells);
  return text;
}

}  // namespace replayeval::reports::latex
