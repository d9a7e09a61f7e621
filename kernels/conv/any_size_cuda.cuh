// Any number of taps, channels and any alignment: a thread computes one channel of one token, which also spreads a few
// rows over more of the GPU than vectors do.
#pragma once

#include "kernels/conv/arguments_cuda.cuh"
#include "kernels/silu_cuda.cuh"

namespace replayeval::cuda {

inline constexpr int kMostTaps = 8;
inline constexpr unsigned kAnySizeThreads = 128;

// The input `token` tokens into the block, as stored; the tokens before it are in the state.
__device__ __forceinline__ std::uint32_t input_bits(const ConvArguments& a, std::int64_t row, std::int64_t slot,
                                                    std::int64_t channel, std::int64_t token) {
  const Conv& c = a.conv;
  const std::int64_t kept = c.conv_kernel - 1;
  const bool in_block = token >= 0;
  const void* from = in_block ? c.in : c.state;
  const std::int64_t at = in_block ? (row * a.block.tokens + token) * c.in_stride + channel
                                   : (slot * c.channels + channel) * kept + kept + token;
  if (c.dtype == Dtype::float32) return static_cast<const std::uint32_t*>(from)[at];
  return static_cast<const std::uint16_t*>(from)[at];
}

__device__ __forceinline__ float decode_as(std::uint32_t bits, Dtype dtype) {
  if (dtype == Dtype::float32) return decode<Dtype::float32>(bits);
  return dtype == Dtype::bfloat16 ? decode_bfloat16(bits) : decode_float16(bits);
}

// The state becomes the last conv_kernel - 1 inputs; all are read before any is written.
__device__ __forceinline__ void move_window(const ConvArguments& a, std::int64_t row, std::int64_t slot,
                                            std::int64_t channel) {
  const Conv& c = a.conv;
  const auto kept = static_cast<int>(c.conv_kernel) - 1;
  std::uint32_t window[kMostTaps - 1];
#pragma unroll
  for (int k = 0; k < kMostTaps - 1; ++k) {
    if (k < kept) window[k] = input_bits(a, row, slot, channel, a.block.tokens - kept + k);
  }
#pragma unroll
  for (int k = 0; k < kMostTaps - 1; ++k) {
    if (k >= kept) continue;
    const std::int64_t at = (slot * c.channels + channel) * kept + k;
    if (c.dtype == Dtype::float32) {
      static_cast<std::uint32_t*>(c.state)[at] = window[k];
    } else {
      static_cast<std::uint16_t*>(c.state)[at] = static_cast<std::uint16_t>(window[k]);
    }
  }
}

// With one token a row the thread that read the channel's state also moves it on.
__global__ void conv_any_size_kernel(const __grid_constant__ ConvArguments a) {
  wait_for_earlier_launches();
  let_later_launches_begin();
  const Conv& c = a.conv;
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= a.block.batch * a.block.tokens * c.channels) return;
  const std::int64_t channel = i % c.channels;
  const std::int64_t row = i / c.channels / a.block.tokens;
  const std::int64_t token = i / c.channels % a.block.tokens;
  const std::int64_t slot = conv_slot(a.block, row);
  const std::int64_t out = (row * a.block.tokens + token) * c.out_stride + channel;
  if (!has_slot(c, slot)) {
    store_element(c.out, out, output_without_slot(slot), c.dtype);
    return;
  }
  float sum = c.bias == nullptr ? 0.0F : c.bias[channel];
  for (int k = 0; k < c.conv_kernel; ++k) {
    const std::uint32_t in = input_bits(a, row, slot, channel, token - (c.conv_kernel - 1) + k);
    sum = fmaf(c.weight[channel * c.conv_kernel + k], decode_as(in, c.dtype), sum);
  }
  store_element(c.out, out, silu(sum), c.dtype);
  if (a.block.tokens == 1) move_window(a, row, slot, channel);
}

__global__ void move_window_kernel(const __grid_constant__ ConvArguments a) {
  wait_for_earlier_launches();
  let_later_launches_begin();
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= a.block.batch * a.conv.channels) return;
  const std::int64_t row = i / a.conv.channels;
  const std::int64_t slot = conv_slot(a.block, row);
  if (has_slot(a.conv, slot)) move_window(a, row, slot, i % a.conv.channels);
}

inline void launch_conv_any_size(cudaStream_t stream, const ConvArguments& a) {
  const auto blocks = [](std::int64_t elements) {
    return dim3(conv_blocks((elements + kAnySizeThreads - 1) / kAnySizeThreads));
  };
  const std::int64_t windows = a.block.batch * a.conv.channels;
  launch(conv_any_size_kernel, blocks(windows * a.block.tokens), kAnySizeThreads, 0, stream, a);
  if (a.block.tokens > 1) launch(move_window_kernel, blocks(windows), kAnySizeThreads, 0, stream, a);
}

}  // namespace replayeval::cuda
