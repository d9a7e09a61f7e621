#include "datasets/tasks/python_text.h"

#include <fmt/format.h>
#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "datasets/code_points.h"
#include "datasets/regex.h"

namespace replayeval::tasks {
namespace {

using datasets::code_point_at;
using datasets::code_point_before;
using datasets::CodePoint;

constexpr char32_t capital_sigma = 0x3A3, small_sigma = 0x3C3, final_sigma = 0x3C2, capital_i_with_dot = 0x130;

bool is_ascii_digit(char byte) { return byte >= '0' && byte <= '9'; }
bool is_ascii_punctuation(char byte) {
  const auto value = static_cast<unsigned char>(byte);
  return value > 0x20 && value < 0x7F && !is_ascii_digit(byte) && ((value | 0x20) < 'a' || (value | 0x20) > 'z');
}

bool has_property(const datasets::Regex& property, std::string_view text, std::size_t at, std::size_t size) {
  return property.matches_at_start(text.substr(at, size));
}

const datasets::Regex& cased() {
  static const datasets::Regex property(R"(\p{Cased})", "cased characters");
  return property;
}
const datasets::Regex& case_ignorable() {
  static const datasets::Regex property(R"(\p{Case_Ignorable})", "case-ignorable characters");
  return property;
}

// Unicode's Final_Sigma (chapter 3.13): a cased character before, none behind, case-ignorable ones not counted.
bool is_final_sigma(std::string_view text, std::size_t at, std::size_t size) {
  std::size_t before = at;
  bool follows_cased = false;
  while (before > 0) {
    const CodePoint point = code_point_before(text, before);
    before -= point.size;
    if (has_property(case_ignorable(), text, before, point.size)) continue;
    follows_cased = has_property(cased(), text, before, point.size);
    break;
  }
  if (!follows_cased) return false;
  for (std::size_t behind = at + size; behind < text.size();) {
    const CodePoint point = code_point_at(text, behind);
    if (!has_property(case_ignorable(), text, behind, point.size))
      return !has_property(cased(), text, behind, point.size);
    behind += point.size;
  }
  return true;
}

// str.isprintable of one character: no control, format, surrogate, private or unassigned one, no separator but " ".
bool is_printable(char32_t value) {
  if (value == U' ') return true;
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(value))) {
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
    case UTF8PROC_CATEGORY_ZS:
      return false;
    default:
      return true;
  }
}

std::string escaped(char32_t value) {
  const auto number = static_cast<std::uint32_t>(value);
  if (number < 0x100) return fmt::format("\\x{:02x}", number);
  return number < 0x10000 ? fmt::format("\\u{:04x}", number) : fmt::format("\\U{:08x}", number);
}

template <typename Drop>
std::string without(std::string_view text, Drop drop) {
  std::string kept;
  kept.reserve(text.size());
  std::copy_if(text.begin(), text.end(), std::back_inserter(kept), [&](char byte) { return !drop(byte); });
  return kept;
}

}  // namespace

bool is_python_space(char32_t value) { return (value >= 0x1C && value <= 0x1F) || datasets::is_white_space(value); }

std::size_t size_without_trailing_space(std::string_view text) {
  std::size_t size = text.size();
  while (size > 0) {
    const CodePoint last = code_point_before(text, size);
    if (!is_python_space(last.value)) break;
    size -= last.size;
  }
  return size;
}

std::string_view strip(std::string_view text) {
  text = text.substr(0, size_without_trailing_space(text));
  while (!text.empty()) {
    const CodePoint first = code_point_at(text, 0);
    if (!is_python_space(first.value)) break;
    text.remove_prefix(first.size);
  }
  return text;
}

std::string lower(std::string_view text) {
  std::string lowered;
  lowered.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint point = code_point_at(text, at);
    if (point.value == capital_i_with_dot) {
      lowered += "i\xCC\x87";  // i and the combining dot above
    } else if (point.value == capital_sigma) {
      datasets::append_utf8(is_final_sigma(text, at, point.size) ? final_sigma : small_sigma, lowered);
    } else {
      const utf8proc_int32_t small = utf8proc_tolower(static_cast<utf8proc_int32_t>(point.value));
      datasets::append_utf8(static_cast<char32_t>(small), lowered);
    }
    at += point.size;
  }
  return lowered;
}

std::string without_punctuation(std::string_view text) { return without(text, is_ascii_punctuation); }
std::string without_digits(std::string_view text) { return without(text, is_ascii_digit); }

std::int64_t code_point_count(std::string_view text) {
  return std::count_if(text.begin(), text.end(),
                       [](char byte) { return (static_cast<unsigned char>(byte) & 0xC0) != 0x80; });
}

std::int64_t word_count(std::string_view text) {
  std::int64_t words = 1;
  bool in_space = false;
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint point = code_point_at(text, at);
    const bool space = is_python_space(point.value);
    if (space && !in_space) ++words;
    in_space = space;
    at += point.size;
  }
  return words;
}

std::string python_repr(std::string_view text) {
  const bool double_quotes = text.find('\'') != std::string_view::npos && text.find('"') == std::string_view::npos;
  const char quote = double_quotes ? '"' : '\'';
  std::string repr(1, quote);
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint point = code_point_at(text, at);
    const char32_t value = point.value;
    if (value == static_cast<char32_t>(quote) || value == U'\\') {
      repr += '\\';
      repr += static_cast<char>(value);
    } else if (value == U'\n' || value == U'\r' || value == U'\t') {
      repr += value == U'\n' ? "\\n" : value == U'\r' ? "\\r" : "\\t";
    } else {
      repr += is_printable(value) ? std::string(text.substr(at, point.size)) : escaped(value);
    }
    at += point.size;
  }
  return repr + quote;
}

std::string python_float(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  std::array<char, 32> digits{};
  const auto end =
      std::to_chars(digits.data(), digits.data() + digits.size(), value, std::chars_format::scientific).ptr;
  const std::string_view scientific(digits.data(), static_cast<std::size_t>(end - digits.data()));
  const std::size_t e = scientific.find('e');
  int exponent = 0;
  const char* exponent_start = scientific.data() + e + (scientific[e + 1] == '+' ? 2 : 1);
  std::from_chars(exponent_start, end, exponent);
  if (exponent < -4 || exponent >= 16) return std::string(scientific);
  std::array<char, 64> fixed{};
  const auto stop = std::to_chars(fixed.data(), fixed.data() + fixed.size(), value, std::chars_format::fixed).ptr;
  std::string text(fixed.data(), stop);
  return text.find('.') == std::string::npos ? text + ".0" : text;
}

}  // namespace replayeval::tasks
