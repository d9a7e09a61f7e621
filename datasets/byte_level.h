// The byte-level alphabet of GPT-2: a visible character for each of the 256 bytes, so that vocabularies are text.
#pragma once

#include <string>
#include <string_view>

namespace replayeval::datasets {

// Appends the characters of the bytes: printable ASCII and Latin-1 stand for themselves, the 68 other bytes for U+0100
// … U+0143 in ascending order.
void append_byte_characters(std::string_view bytes, std::string& text);

// Appends the bytes of the characters, or, if one of them is not in the alphabet, the text as it is.
void append_character_bytes(std::string_view text, std::string& bytes);

}  // namespace replayeval::datasets
