// The causal convolution on the GPU: a thread computes one channel of one token.
#include "kernels/mamba2/backends.h"
#include "kernels/mamba2/launch_cuda.cuh"
#include "kernels/mamba2/silu_cuda.cuh"

namespace replayeval::mamba2::cuda {
namespace {

constexpr int kMaxTaps = 8;
constexpr unsigned kThreads = 128;

struct ConvArguments {
  Block block;
  Conv conv;
};

__device__ __forceinline__ std::int64_t conv_slot(const Block& block, std::int64_t row) {
  return block.slots == nullptr ? row : block.slots[row];
}

// The input `token` tokens into the block; the tokens before it are in the state.
__device__ __forceinline__ float input_at(const ConvArguments& a, std::int64_t row, std::int64_t slot,
                                          std::int64_t channel, std::int64_t token) {
  const Conv& c = a.conv;
  if (token >= 0) return load_element(c.in, (row * a.block.tokens + token) * c.in_stride + channel, c.dtype);
  const std::int64_t kept = c.conv_kernel - 1;
  return load_element(c.state, (slot * c.channels + channel) * kept + kept + token, c.dtype);
}

// The state becomes the last conv_kernel - 1 inputs; all are read before any is written.
__device__ __forceinline__ void move_window(const ConvArguments& a, std::int64_t row, std::int64_t slot,
                                            std::int64_t channel) {
  const Conv& c = a.conv;
  const auto kept = static_cast<int>(c.conv_kernel) - 1;
  float window[kMaxTaps - 1];
#pragma unroll
  for (int k = 0; k < kMaxTaps - 1; ++k) {
    if (k < kept) window[k] = input_at(a, row, slot, channel, a.block.tokens - kept + k);
  }
#pragma unroll
  for (int k = 0; k < kMaxTaps - 1; ++k) {
    if (k < kept) store_element(c.state, (slot * c.channels + channel) * kept + k, window[k], c.dtype);
  }
}

// With one token a row the thread that read the channel's state also moves it on.
__global__ void conv_kernel(const __grid_constant__ ConvArguments a, std::int64_t elements) {
  const Conv& c = a.conv;
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= elements) return;
  const std::int64_t channel = i % c.channels;
  const std::int64_t row = i / c.channels / a.block.tokens;
  const std::int64_t token = i / c.channels % a.block.tokens;
  const std::int64_t slot = conv_slot(a.block, row);
  const std::int64_t out = (row * a.block.tokens + token) * c.out_stride + channel;
  if (slot < 0 || slot >= c.slots) {
    store_element(c.out, out, slot < 0 ? 0.0F : nanf(""), c.dtype);
    return;
  }
  float sum = c.bias == nullptr ? 0.0F : c.bias[channel];
  for (int k = 0; k < c.conv_kernel; ++k) {
    const float in = input_at(a, row, slot, channel, token - (c.conv_kernel - 1) + k);
    sum = fmaf(c.weight[channel * c.conv_kernel + k], in, sum);
  }
  store_element(c.out, out, silu(sum), c.dtype);
  if (a.block.tokens == 1) move_window(a, row, slot, channel);
}

__global__ void move_window_kernel(const __grid_constant__ ConvArguments a, std::int64_t elements) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= elements) return;
  const std::int64_t row = i / a.conv.channels;
  const std::int64_t slot = conv_slot(a.block, row);
  if (slot >= 0 && slot < a.conv.slots) move_window(a, row, slot, i % a.conv.channels);
}

unsigned blocks_for(std::int64_t elements) {
  const std::int64_t blocks = (elements + kThreads - 1) / kThreads;
  if (blocks > std::numeric_limits<int>::max()) {
    throw std::invalid_argument("mamba2::causal_conv: " + std::to_string(elements) +
                                " elements are too many for a call");
  }
  return static_cast<unsigned>(blocks);
}

}  // namespace

void causal_conv(void* stream, const Block& block, const Conv& conv) {
  const ConvArguments arguments{block, conv};
  const auto on = static_cast<cudaStream_t>(stream);
  const std::int64_t elements = block.batch * block.tokens * conv.channels;
  conv_kernel<<<blocks_for(elements), kThreads, 0, on>>>(arguments, elements);
  expect_launched("causal_conv");
  if (block.tokens == 1) return;
  const std::int64_t windows = block.batch * conv.channels;
  move_window_kernel<<<blocks_for(windows), kThreads, 0, on>>>(arguments, windows);
  expect_launched("causal_conv, moving the window");
}

}  // namespace replayeval::mamba2::cuda
