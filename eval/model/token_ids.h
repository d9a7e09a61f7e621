// The door of every model's forward.
#pragma once

#include <ATen/core/Tensor.h>

#include "eval/model/model.h"

namespace replayeval {

// Throws std::invalid_argument unless ids are [cache.slots(), T] int64 with T >= 1, inside the vocabulary (naming id,
// place and size), and fit into what is left of the cache.
void check_token_ids(const at::Tensor& ids, std::int64_t vocab_size, const DecodeCache& cache);

}  // namespace replayeval
