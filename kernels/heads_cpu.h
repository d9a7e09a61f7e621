// Spreads the (row, head) pairs of a block over threads.
#pragma once

#include "kernels/decode.h"

#include <omp.h>

#include <cstddef>
#include <cstdint>
#include <memory>

namespace replayeval::cpu {

inline std::int64_t slot_of(const DecodeBlock& block, std::int64_t row) {
  return block.slots == nullptr ? row : block.slots[row];
}

// Calls task(row, head, scratch, counts) for every pair, in no particular order; scratch holds `scratch_floats` floats
// of the thread's own. `counts` is null where the caller counts nothing.
template <class Task>
void for_each_head(std::int64_t batch, std::int64_t num_heads, std::size_t scratch_floats, StorageCounts* counts,
                   const Task& task) {
  const std::int64_t pairs = batch * num_heads;
  const int threads = pairs < 2 ? 1 : omp_get_max_threads();
  const auto scratch = std::make_unique_for_overwrite<float[]>(scratch_floats * static_cast<std::size_t>(threads));
  std::uint64_t saturated = 0;
  std::uint64_t subnormal = 0;
  std::uint64_t non_finite = 0;
#pragma omp parallel num_threads(threads) reduction(+ : saturated, subnormal, non_finite)
  {
    float* own = scratch.get() + scratch_floats * static_cast<std::size_t>(omp_get_thread_num());
    StorageCounts seen;
#pragma omp for schedule(static)
    for (std::int64_t pair = 0; pair < pairs; ++pair) {
      task(pair / num_heads, pair % num_heads, own, counts == nullptr ? nullptr : &seen);
    }
    saturated += seen.saturated;
    subnormal += seen.subnormal;
    non_finite += seen.non_finite;
  }
  if (counts == nullptr) return;
  counts->saturated += saturated;
  counts->subnormal += subnormal;
  counts->non_finite += non_finite;
}

}  // namespace replayeval::cpu
