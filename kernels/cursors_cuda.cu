#include "kernels/cursors.h"
#include "kernels/launch_cuda.cuh"

namespace replayeval::cuda {
namespace {

__global__ void advance_kernel(DecodeBlock block, int buffer_len, std::int32_t* cursor) {
  const std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (row >= block.batch) return;
  const std::int64_t slot = block.slots == nullptr ? row : block.slots[row];
  if (slot >= 0) cursor[slot] = static_cast<std::int32_t>((cursor[slot] + block.tokens) % buffer_len);
}

}  // namespace

void advance_cursors(void* stream, const DecodeBlock& block, std::int64_t buffer_len, std::int32_t* cursor) {
  constexpr unsigned kThreads = 128;
  const auto blocks = static_cast<unsigned>((block.batch + kThreads - 1) / kThreads);
  advance_kernel<<<blocks, kThreads, 0, static_cast<cudaStream_t>(stream)>>>(block, static_cast<int>(buffer_len),
                                                                             cursor);
  expect_launched("advance_cursors");
}

}  // namespace replayeval::cuda
