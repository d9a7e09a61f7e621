#include "datasets/code_points.h"

#include <utf8proc.h>

#include <algorithm>

#include "datasets/regex.h"

namespace replayeval::datasets {
namespace {

constexpr std::string_view replacement_character = "\xEF\xBF\xBD";

unsigned char byte_at(std::string_view text, std::size_t offset) { return static_cast<unsigned char>(text[offset]); }

bool is_continuation(std::string_view text, std::size_t offset) {
  return offset < text.size() && (byte_at(text, offset) & 0xC0) == 0x80;
}

// Bytes of the longest part at `offset` that begins some UTF-8 character; `complete` if it is one.
std::size_t subpart_size(std::string_view text, std::size_t offset, bool& complete) {
  const unsigned char first = byte_at(text, offset);
  complete = first < 0x80;
  if (first < 0xC2 || first > 0xF4) return 1;
  const std::size_t wanted = first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
  // Narrower bounds of the second byte: no overlong forms, no surrogates, nothing above U+10FFFF.
  const unsigned char low = first == 0xE0 ? 0xA0 : first == 0xF0 ? 0x90 : 0x80;
  const unsigned char high = first == 0xED ? 0x9F : first == 0xF4 ? 0x8F : 0xBF;
  if (offset + 1 >= text.size() || byte_at(text, offset + 1) < low || byte_at(text, offset + 1) > high) return 1;
  std::size_t size = 2;
  while (size < wanted && is_continuation(text, offset + size)) ++size;
  complete = size == wanted;
  return size;
}

utf8proc_category_t category(char32_t value) { return utf8proc_category(static_cast<utf8proc_int32_t>(value)); }

}  // namespace

CodePoint code_point_at(std::string_view text, std::size_t offset) {
  const unsigned char first = byte_at(text, offset);
  if (first < 0x80) return {first, 1};
  const auto next = [&](std::size_t i) { return static_cast<char32_t>(byte_at(text, offset + i) & 0x3F); };
  if (first < 0xE0) return {(static_cast<char32_t>(first & 0x1F) << 6) | next(1), 2};
  if (first < 0xF0) return {(static_cast<char32_t>(first & 0x0F) << 12) | (next(1) << 6) | next(2), 3};
  return {(static_cast<char32_t>(first & 0x07) << 18) | (next(1) << 12) | (next(2) << 6) | next(3), 4};
}

CodePoint code_point_before(std::string_view text, std::size_t end) {
  std::size_t start = end - 1;
  while (start > 0 && is_continuation(text, start)) --start;
  return code_point_at(text, start);
}

void append_utf8(char32_t value, std::string& text) {
  utf8proc_uint8_t bytes[4];
  const utf8proc_ssize_t size = utf8proc_encode_char(static_cast<utf8proc_int32_t>(value), bytes);
  text.append(reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(size));
}

bool is_white_space(char32_t value) {
  return (value >= 0x09 && value <= 0x0D) || value == 0x20 || value == 0x85 || value == 0xA0 || value == 0x1680 ||
         (value >= 0x2000 && value <= 0x200A) || value == 0x2028 || value == 0x2029 || value == 0x202F ||
         value == 0x205F || value == 0x3000;
}

bool is_numeric(char32_t value) {
  const utf8proc_category_t found = category(value);
  return found == UTF8PROC_CATEGORY_ND || found == UTF8PROC_CATEGORY_NL || found == UTF8PROC_CATEGORY_NO;
}

bool is_punctuation(char32_t value) {
  if (value < 0x80) return value > 0x20 && value < 0x7F && !(is_numeric(value) || (value | 0x20) - 'a' < 26U);
  const utf8proc_category_t found = category(value);
  return found >= UTF8PROC_CATEGORY_PC && found <= UTF8PROC_CATEGORY_PO;
}

bool is_mark(char32_t value) {
  const utf8proc_category_t found = category(value);
  return found == UTF8PROC_CATEGORY_MN || found == UTF8PROC_CATEGORY_MC || found == UTF8PROC_CATEGORY_ME;
}

bool is_word_character(char32_t value) {
  static const Regex word(R"([\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\x{200C}\x{200D}])", "word characters");
  std::string text;
  append_utf8(value, text);
  return word.matches_at_start(text);
}

std::string replace_ill_formed(std::string_view text) {
  std::string whole;
  whole.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    bool complete = false;
    const std::size_t size = subpart_size(text, at, complete);
    whole += complete ? text.substr(at, size) : replacement_character;
    at += size;
  }
  return whole;
}

}  // namespace replayeval::datasets
