// What the gated norm's kernels are given, and the arithmetic of one element.
#pragma once

#include "kernels/gated_norm/gated_norm.h"
#include "kernels/launch_cuda.cuh"
#include "kernels/silu_cuda.cuh"

namespace replayeval::cuda {

inline constexpr int kNormThreads = 256;  // of a block

struct GatedNormArguments {
  GatedNorm norm;
  int group_threads = 0;  // that share a group: a power of two up to 32, or whole warps; group_size alone says how many
  int unit_threads = 0;   // whole warps that have one group, or some that lie beside one another in a row
};

// act(z)
__device__ __forceinline__ float gate_factor(GateActivation activation, float z) {
  return (activation == GateActivation::silu ? z : 1.0F) / sigmoid_denominator(z);
}

__device__ __forceinline__ float inverse_root(float squares, const GatedNorm& n) {
  return 1.0F / sqrtf(squares / static_cast<float>(n.group_size) + n.eps);
}

// What the norm is taken of.
__device__ __forceinline__ float norm_input(const GatedNorm& n, float y, float gate) {
  return n.form == GateForm::norm_then_gate ? y : y * gate;
}

__device__ __forceinline__ float norm_output(const GatedNorm& n, float h, float gate, float inverse, float weight) {
  if (n.form == GateForm::gate_only) return h;
  const float normed = weight * (h * inverse);
  return n.form == GateForm::norm_then_gate ? normed * gate : normed;
}

// Sum over `threads` that share a group, in an order that their number alone fixes; each of them gets it. All threads
// of the block take part.
__device__ __forceinline__ float group_sum(float value, int threads) {
  const int lanes = min(threads, 32);
  for (int distance = lanes / 2; distance >= 1; distance /= 2) {
    value = value + __shfl_xor_sync(0xFFFFFFFFU, value, distance);
  }
  if (threads <= 32) return value;
  __shared__ float warp_sums[32];
  const auto warp = static_cast<int>(threadIdx.x) / 32;
  if (threadIdx.x % 32 == 0) warp_sums[warp] = value;
  __syncthreads();
  const int warps = threads / 32;
  const int first = warp / warps * warps;
  float sum = 0.0F;
  for (int w = first; w < first + warps; ++w) sum = sum + warp_sums[w];
  return sum;
}

inline unsigned norm_blocks(std::int64_t blocks) {
  if (blocks > std::numeric_limits<int>::max()) {
    throw std::invalid_argument("gated_norm: " + std::to_string(blocks) + " blocks of work are too many for a call");
  }
  return static_cast<unsigned>(blocks);
}

}  // namespace replayeval::cuda
