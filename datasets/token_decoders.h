// The "decoder" of a tokenizer.json: from the vocabulary's spellings back to text.
//
// Supported: ByteLevel, ByteFallback, Metaspace, Fuse, Replace, Strip, BPEDecoder, Sequence.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "datasets/json_node.h"

namespace replayeval::datasets {

class TokenDecoder {
 public:
  virtual ~TokenDecoder() = default;
  // Changes the spellings in place, and their number where it joins some. UTF-8 in, UTF-8 out: bytes that form no
  // character become U+FFFD.
  virtual void apply(std::vector<std::string>& tokens) const = 0;
};

// Throws DataError naming the place: a type that is not supported, a missing or wrong member.
std::unique_ptr<TokenDecoder> make_token_decoder(const JsonNode& node);

}  // namespace replayeval::datasets
