// A recipe's blocks among filler.
#pragma once

#include <cstdint>
#include <string>

#include "datasets/recall/filler.h"
#include "datasets/recall/recipe.h"

namespace replayeval::datasets::recall {

// Tokens of the blocks and the tail.
std::int64_t content_size(const Recipe& recipe, const Count& count);

// A document of exactly `length` tokens. A block stands where its place says to within three sentences: gaps too small
// for sentences are closed. Throws DataError when the blocks and the tail alone are longer; `kind` names them.
Segments lay_out(Random& random, std::int64_t length, const Recipe& recipe, const Filler& filler, const Count& count,
                 const std::string& kind);

}  // namespace replayeval::datasets::recall
