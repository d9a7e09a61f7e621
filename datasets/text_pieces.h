// Text on its way to a vocabulary: parts of one string, some of which are tokens already.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace replayeval::datasets {

struct TextPiece {
  std::size_t begin = 0, end = 0;  // bytes of TextPieces::text; never empty unless a token
  std::int32_t token = -1;         // >= 0: an added token, which nothing parts further
  bool at_start = false;           // begins where the whole text begins
};

struct TextPieces {
  std::string text;  // UTF-8
  std::vector<TextPiece> pieces;

  std::string_view of(const TextPiece& piece) const {
    return std::string_view(text).substr(piece.begin, piece.end - piece.begin);
  }
};

}  // namespace replayeval::datasets
