// The "normalizer" of a tokenizer.json: what is done to text before it is parted.
//
// Supported: NFC, NFD, NFKC, NFKD, Lowercase, Strip, StripAccents, Prepend, Replace, Sequence. Normal forms, marks
// and case come from utf8proc (Unicode 15.0 in Debian 12). The tokenizers library 0.23 normalizes by Unicode 9.0: it
// neither reorders, strips nor decomposes the about 400 marks and compatibility characters that later versions added
// (e.g. U+0898, U+0D3B, U+1AC1), so that ids of texts with them may differ.
#pragma once

#include <memory>
#include <string>

#include "datasets/json_node.h"

namespace replayeval::datasets {

struct NormalizedText {
  std::string text;      // UTF-8
  bool at_start = true;  // its first character is, or replaces, the first one of the whole text
};

class Normalizer {
 public:
  virtual ~Normalizer() = default;
  virtual void apply(NormalizedText& text) const = 0;
};

// Throws DataError naming the place: a type that is not supported, a missing or wrong member.
std::unique_ptr<Normalizer> make_normalizer(const JsonNode& node);

}  // namespace replayeval::datasets
