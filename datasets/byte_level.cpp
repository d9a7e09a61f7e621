#include "datasets/byte_level.h"

#include <array>

#include "datasets/code_points.h"

namespace replayeval::datasets {
namespace {

constexpr std::size_t alphabet_end = 0x144;

bool is_itself(unsigned byte) { return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte != 0xAD); }

struct Alphabet {
  std::array<std::string, 256> characters;
  std::array<int, alphabet_end> bytes{};  // -1: no character of the alphabet

  Alphabet() {
    bytes.fill(-1);
    char32_t next = 0x100;
    for (unsigned byte = 0; byte < 256; ++byte) {
      const char32_t character = is_itself(byte) ? byte : next++;
      append_utf8(character, characters[byte]);
      bytes[character] = static_cast<int>(byte);
    }
  }
};

const Alphabet& alphabet() {
  static const Alphabet value;
  return value;
}

}  // namespace

void append_byte_characters(std::string_view bytes, std::string& text) {
  const Alphabet& known = alphabet();
  for (const char byte : bytes) text += known.characters[static_cast<unsigned char>(byte)];
}

void append_character_bytes(std::string_view text, std::string& bytes) {
  const Alphabet& known = alphabet();
  const std::size_t before = bytes.size();
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint found = code_point_at(text, at);
    const int byte = found.value < alphabet_end ? known.bytes[found.value] : -1;
    if (byte < 0) {
      bytes.resize(before);
      bytes += text;
      return;
    }
    bytes += static_cast<char>(byte);
    at += found.size;
  }
}

}  // namespace replayeval::datasets
