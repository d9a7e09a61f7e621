// The "pre_tokenizer" of a tokenizer.json: how text is parted into what the model's merges never cross.
//
// Supported: ByteLevel, Split, Digits, Punctuation, Whitespace, WhitespaceSplit, Metaspace, Sequence.
#pragma once

#include <memory>

#include "datasets/json_node.h"
#include "datasets/text_pieces.h"

namespace replayeval::datasets {

class PreTokenizer {
 public:
  virtual ~PreTokenizer() = default;
  // Parts every piece that is not a token. Throws DataError if a pattern backtracks beyond PCRE2's limits.
  virtual void apply(TextPieces& pieces) const = 0;
};

// Throws DataError naming the place: a type that is not supported, a missing or wrong member.
std::unique_ptr<PreTokenizer> make_pre_tokenizer(const JsonNode& node);

}  // namespace replayeval::datasets
