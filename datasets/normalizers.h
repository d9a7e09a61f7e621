// The "normalizer" of a tokenizer.json: what is done to text before it is parted.
//
// Supported: NFC, NFD, NFKC, NFKD, Lowercase, Strip, StripAccents, Prepend, Replace, Sequence. Normal forms and case
// come from utf8proc (Unicode 15.0 in Debian 12); for characters that another Unicode version added or gave a
// decomposition, other implementations may differ.
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
