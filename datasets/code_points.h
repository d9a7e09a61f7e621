// Code points of text that is known to be UTF-8, and the classes of them that tokenizers ask for.
//
// Categories come from utf8proc (Unicode 15.0 in Debian 12), word characters from PCRE2 (Unicode 14.0). The tokenizers
// library 0.23 has newer word characters (letters and digits added since, e.g. U+10D40, count as none here) and older
// punctuation (Unicode 8.0: the about 100 signs added since, e.g. U+2E43, do not count as such there; U+166D, a symbol
// since Unicode 12, does).
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace replayeval::datasets {

struct CodePoint {
  char32_t value = 0;
  std::size_t size = 0;  // bytes
};

CodePoint code_point_at(std::string_view text, std::size_t offset);   // offset < text.size(), on a character's start
CodePoint code_point_before(std::string_view text, std::size_t end);  // the character that ends at `end` > 0
void append_utf8(char32_t value, std::string& text);

bool is_white_space(char32_t value);     // Unicode's White_Space
bool is_numeric(char32_t value);         // categories Nd, Nl, No
bool is_punctuation(char32_t value);     // ASCII punctuation (symbols included) and the categories P*
bool is_mark(char32_t value);            // categories Mn, Mc, Me
bool is_word_character(char32_t value);  // Alphabetic, marks, Nd, Pc, join controls: \w of UTS #18, annex C

// `text` with every maximal part that is not UTF-8 replaced by U+FFFD (as Unicode's chapter 3.9, "U+FFFD substitution
// of maximal subparts", has it).
std::string replace_ill_formed(std::string_view text);

}  // namespace replayeval::datasets
