// The "post_processor" of a tokenizer.json: the special tokens around a text.
//
// Supported: TemplateProcessing, ByteLevel (which only concerns offsets), Sequence.
#pragma once

#include <cstdint>
#include <vector>

#include "datasets/json_node.h"

namespace replayeval::datasets {

struct SurroundingTokens {
  std::vector<std::int32_t> before, after;
};

// Of a single text. Throws DataError naming the place: a type that is not supported, a missing or wrong member, a
// template without the text or with it twice.
SurroundingTokens parse_post_processor(const JsonNode& node);

}  // namespace replayeval::datasets
