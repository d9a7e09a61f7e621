// The mixer's short causal convolution with a rolling state, and its SiLU.
//   u_t[c] = silu(bias[c] + sum_k weight[c][k] * in_{t - (conv_kernel - 1) + k}[c])
// Arithmetic in float32 with k ascending, one rounding to `dtype` at the end. Two modes, devices, slot map and errors
// as the recurrences have them (mamba2/mamba2.h).
#pragma once

#include "kernels/decode.h"

namespace replayeval {

struct Conv {
  std::int64_t channels = 0;
  std::int64_t conv_kernel = 4;   // 2..8
  const float* weight = nullptr;  // [channels, conv_kernel]
  const float* bias = nullptr;    // [channels] or null
  const void* in = nullptr;       // [batch * tokens, channels], row stride in_stride
  std::int64_t in_stride = 0;
  void* out = nullptr;  // [batch * tokens, channels], row stride out_stride; must not overlap in
  std::int64_t out_stride = 0;
  void* state = nullptr;  // [slots, channels, conv_kernel - 1]: the last inputs, oldest first
  std::int64_t slots = 0;
  Dtype dtype = Dtype::float32;  // of in, out and state
};

void causal_conv(const Device&, const DecodeBlock&, const Conv&);

}  // namespace replayeval
