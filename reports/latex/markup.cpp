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

constexpr std::size_t longest_whole_word = 16;  // characters; longer ones may break
constexpr std::size_t longest_part = 12;        // of a longer word, without a place to break at
constexpr const char* may_break = "\\allowbreak{}";

bool is_joint(char c) { return c == '-' || c == '_' || c == '/' || c == '.' || c == ':'; }

// A word with places to break at, where it is long.
std::string word_of(const std::string& word) {
  const bool breaks = display_width(word) > longest_whole_word;
  std::string out;
  std::size_t unbroken = 0;
  for (std::size_t at = 0; at < word.size();) {
    const auto [size, latex] = character(word, at);
    out += latex;
    const bool joint = is_joint(word[at]);
    at += size;
    if (!breaks || at >= word.size()) continue;
    unbroken = joint ? 0 : unbroken + 1;
    if (!joint && unbroken < longest_part) continue;
    out += may_break;
    unbroken = 0;
  }
  return out;
}

std::string characters(const std::string& text) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find_first_of(" \n\t\r", at), text.size());
    out += word_of(text.substr(at, end - at));
    if (end < text.size()) out += " ";
    at = end + 1;
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

// How a table is set: columns whose words are long break their lines, the others have one.
class Layout {
 public:
  explicit Layout(const Table& table) : table_(table) {
    for (std::size_t c = 0; c < table.titles().size(); ++c) {
      std::size_t widest = display_width(table.titles()[c].plain());
      for (const std::vector<Text>& row : table.rows()) widest = std::max(widest, display_width(row[c].plain()));
      widths_.push_back(widest);
    }
  }

  std::string alignment() const {
    std::string columns;
    for (std::size_t c = 0; c < widths_.size(); ++c)
      columns += breaks(c) ? fmt::format("p{{{}em}}", name_em) : table_.to_the_left(c) ? "l" : "r";
    return columns;
  }

  std::string row(const std::vector<Text>& cells) const {
    std::string text;
    for (std::size_t c = 0; c < cells.size(); ++c)
      text += (c == 0 ? "" : " & ") + std::string(breaks(c) ? "\\raggedright " : "") + text_of(cells[c]);
    return text + " \\\\\n";
  }

  std::size_t lines(const std::vector<Text>& cells) const {
    std::size_t most = 1;
    for (std::size_t c = 0; c < cells.size(); ++c)
      if (breaks(c)) most = std::max(most, (display_width(cells[c].plain()) + widest_name - 1) / widest_name);
    return most;
  }

  bool needs_both_columns() const {
    std::size_t width = 0;
    for (std::size_t c = 0; c < widths_.size(); ++c) width += (breaks(c) ? widest_name : widths_[c]) + 2;
    return width > one_column;
  }

 private:
  static constexpr int name_em = 16;  // widest_name letters of a typewriter, and some

  // The last column never: \\raggedright takes the meaning of the row's end from it.
  bool breaks(std::size_t c) const {
    return widths_[c] > widest_name && table_.to_the_left(c) && c + 1 < widths_.size();
  }

  const Table& table_;
  std::vector<std::size_t> widths_;  // characters
};

// The rows in parts of at most `most_lines` lines, and of about as many each.
std::vector<std::string> parts_of(const Table& table, const Layout& layout) {
  std::size_t total = 0;
  for (const std::vector<Text>& cells : table.rows()) total += layout.lines(cells);
  const std::size_t count = std::max<std::size_t>(1, (total + most_lines - 1) / most_lines);
  const std::size_t share = (total + count - 1) / count;
  std::vector<std::string> parts(1);
  std::size_t lines = 0;
  for (const std::vector<Text>& cells : table.rows()) {
    const std::size_t more = layout.lines(cells);
    if (lines > 0 && lines + more > share) {
      parts.emplace_back();
      lines = 0;
    }
    parts.back() += layout.row(cells);
    lines += more;
  }
  return parts;
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
  const Layout layout(table.table);
  const char* environment = layout.needs_both_columns() ? "table*" : "table";
  std::string text =
      "% For a document with \\usepackage{booktabs} and \\usepackage{graphicx}.\n"
      "\\providecommand{\\replayevalfit}[1]{\\sbox0{#1}\\ifdim\\wd0>\\linewidth"
      "\\resizebox{\\linewidth}{!}{\\usebox0}\\else\\usebox0\\fi}\n";
  const std::vector<std::string> parts = parts_of(table.table, layout);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const std::string caption =
        i == 0
            ? fmt::format("\\caption{{{}}}\n\\label{{tab:{}}}\n", escaped(table.caption), table.name)
            : fmt::format("\\addtocounter{{table}}{{-1}}\n\\caption{{(continued, {} of {})}}\n", i + 1, parts.size());
    text += fmt::format(
        "\\begin{{{0}}}\n\\centering\\small\n{1}\\vspace{{0.6ex}}\n\\replayevalfit{{\\begin{{tabular}}{{{2}}}"
        "\n\\toprule\n{3}\\midrule\n{"
        "4}"
        "\\bottomrule\n\\end{{tabular}}}}\n\\end{{{0}}}\n",
        environment, caption, layout.alignment(), layout.row(table.table.titles()), parts[i]);
  }
  return text;
}

std::string csv(const Table& table) {
  std::string text = csv_row(table.titles());
  for (const std::vector<Text>& cells : table.rows()) text += csv_row(cells);
  return text;
}

}  // namespace replayeval::reports::latex
