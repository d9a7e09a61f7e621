// What the convolution's kernels are given, and the row of the batch as they see it.
#pragma once

#include "kernels/conv/conv.h"
#include "kernels/launch_cuda.cuh"

namespace replayeval::cuda {

struct ConvArguments {
  DecodeBlock block;
  Conv conv;
  // How the work is cut; nothing of it shows in the results.
  int tiles;   // blocks that a row's channels take
  int chunk;   // tokens that a warp walks through
  int chunks;  // blocks that a row's tokens take
};

__device__ __forceinline__ std::int64_t conv_slot(const DecodeBlock& block, std::int64_t row) {
  return block.slots == nullptr ? row : block.slots[row];
}
__device__ __forceinline__ bool has_slot(const Conv& conv, std::int64_t slot) { return slot >= 0 && slot < conv.slots; }
// The outputs of a row without one: zero where it is padded, NaN where its slot is out of range.
__device__ __forceinline__ float output_without_slot(std::int64_t slot) { return slot < 0 ? 0.0F : nanf(""); }

inline unsigned conv_blocks(std::int64_t blocks) {
  if (blocks > std::numeric_limits<int>::max()) {
    throw std::invalid_argument("causal_conv: " + std::to_string(blocks) + " blocks of work are too many for a call");
  }
  return static_cast<unsigned>(blocks);
}

}  // namespace replayeval::cuda
