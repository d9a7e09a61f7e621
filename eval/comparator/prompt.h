// Prompts as servers compute them: apart from the arms, whose caches take what is left at the end.
#pragma once

#include <cstdint>
#include <span>

#include "eval/model/model.h"

namespace replayeval {

// Decodes `tokens` in blocks of at most `block` and stores what they leave behind in `slot` of every arm of `cache`;
// without tokens nothing happens. `prompts`: a cache of prefill_arm() with one slot, that holds them. The work is no
// arm's, so no clock sees its kernels. Throws Interrupted between blocks when asked to stop, and as Model::forward()
// and DecodeCache::store_prefilled().
void prefill_slot(const Model& model, std::span<const std::int32_t> tokens, std::int64_t block, DecodeCache& prompts,
                  DecodeCache& cache, std::int64_t slot);

// The same for a batch: ids [slots, T] int64, row by row into the slots of `cache`; `prompts` has as many.
void prefill_slots(const Model& model, const at::Tensor& ids, std::int64_t block, DecodeCache& prompts,
                   DecodeCache& cache);

}  // namespace replayeval
