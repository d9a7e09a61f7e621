#include "reports/text_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>
#include <stdexcept>

namespace replayeval::reports {
namespace {

constexpr std::size_t gap = 2;              // columns between columns
constexpr std::size_t narrowest_name = 12;  // of the first column, where it has to give way

// The first `width` columns of `text`, the last of them "…".
std::string shortened(const std::string& text, std::size_t width) {
  if (display_width(text) <= width) return text;
  std::string kept;
  std::size_t columns = 0;
  for (const char byte : text) {
    const bool begins_character = (static_cast<unsigned char>(byte) & 0xC0) != 0x80;
    if (begins_character && ++columns == width) break;
    kept += byte;
  }
  return kept + "…";
}

std::string padded(const std::string& text, std::size_t width, Align align) {
  const std::string space(width - std::min(width, display_width(text)), ' ');
  return align == Align::left ? text + space : space + text;
}

// The words of `text`, where an interval "[a, b]" and a number with its "%" are one word each.
std::vector<std::string> unbroken_words(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> words;
  bool in_brackets = false;
  for (std::string word; stream >> word;) {
    if (!words.empty() && (in_brackets || word.starts_with('%'))) {
      words.back() += " " + word;
    } else {
      words.push_back(word);
    }
    const std::size_t opened = word.find_last_of('[');
    const std::size_t closed = word.find_last_of(']');
    if (opened != std::string::npos) in_brackets = true;
    if (closed != std::string::npos && (opened == std::string::npos || closed > opened)) in_brackets = false;
  }
  return words;
}

}  // namespace

std::size_t display_width(const std::string& text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

std::string tinted(const std::string& text, Tint tint, bool colour) {
  if (!colour || tint == Tint::none || text.empty()) return text;
  constexpr const char* codes[] = {"0", "2", "1", "32", "33", "31"};
  return fmt::format("\x1b[{}m{}\x1b[0m", codes[static_cast<int>(tint)], text);
}

std::string wrapped(const std::string& text, int width, int indent) {
  std::string lines;
  std::string line(text.find_first_not_of(' ') == std::string::npos ? 0 : text.find_first_not_of(' '), ' ');
  bool begun = false;
  for (const std::string& word : unbroken_words(text)) {
    if (begun && display_width(line) + 1 + display_width(word) > static_cast<std::size_t>(width)) {
      lines += line + "\n";
      line = std::string(static_cast<std::size_t>(indent), ' ');
      begun = false;
    }
    line += (begun ? " " : "") + word;
    begun = true;
  }
  return lines + line + "\n";
}

void TextTable::add_row(std::vector<Cell> cells) {
  if (cells.size() != columns_.size()) {
    throw std::invalid_argument(fmt::format("table: a row of {} cells; expected {}", cells.size(), columns_.size()));
  }
  rows_.push_back(std::move(cells));
}

std::string TextTable::render(int width, bool colour) const {
  std::vector<std::size_t> widths;
  std::vector<std::size_t> shown;
  std::size_t total = 0;
  for (std::size_t c = 0; c < columns_.size(); ++c) {
    widths.push_back(display_width(columns_[c].title));
    for (const auto& row : rows_) widths[c] = std::max(widths[c], display_width(row[c].text));
    shown.push_back(c);
    total += widths[c] + (c > 0 ? gap : 0);
  }
  const auto limit = static_cast<std::size_t>(std::max(0, width));
  const auto importance = [&](std::size_t c) { return columns_[c].importance; };
  while (total > limit) {
    auto least = shown.end();
    for (auto at = shown.begin(); at != shown.end(); ++at) {
      if (importance(*at) > 0 && (least == shown.end() || importance(*at) < importance(*least))) least = at;
    }
    if (least == shown.end()) break;
    total -= widths[*least] + gap;
    shown.erase(least);
  }
  if (total > limit && widths[0] > narrowest_name) {
    widths[0] = std::max(narrowest_name, widths[0] - std::min(widths[0], total - limit));
  }
  std::string text;
  const auto line = [&](const auto& cell_of) {
    std::string out;
    for (const std::size_t c : shown) {
      const Cell cell = cell_of(c);
      const std::string content = c == 0 ? shortened(cell.text, widths[0]) : cell.text;
      const bool last = c == shown.back() && columns_[c].align == Align::left;
      out += (out.empty() ? "" : "  ") +
             tinted(last ? content : padded(content, widths[c], columns_[c].align), cell.tint, colour);
    }
    text += out.substr(0, out.find_last_not_of(' ') + 1) + "\n";
  };
  line([&](std::size_t c) { return Cell{.text = columns_[c].title, .tint = Tint::bold}; });
  for (const auto& row : rows_) {
    line([&](std::size_t c) { return row[c]; });
  }
  return text;
}

}  // namespace replayeval::reports
