// What the gated norm's kernels share: the arithmetic of one element, and a sum over a group. Their blocks have a
// group, or some that lie beside one another in a row, along x, in whole warps, and several rows along y.
#pragma once

#include "kernels/gated_norm/gated_norm.h"
#include "kernels/launch_cuda.cuh"
#include "kernels/silu_cuda.cuh"

namespace replayeval::cuda {

inline constexpr int kNormThreads = 128;  // of a block, at least where groups are no longer

__device__ __forceinline__ float inverse_root(float squares, const GatedNorm& n) {
  return 1.0F / sqrtf(squares / static_cast<float>(n.group_size) + n.eps);
}

// What the norm is taken of.
template <GateForm kForm>
__device__ __forceinline__ float norm_input(float y, float gate) {
  return kForm == GateForm::norm_then_gate ? y : y * gate;
}

template <GateForm kForm>
__device__ __forceinline__ float norm_output(float h, float gate, float inverse, float weight) {
  if constexpr (kForm == GateForm::gate_only) return h;
  const float normed = weight * (h * inverse);
  return kForm == GateForm::norm_then_gate ? normed * gate : normed;
}

// Sum over `threads` that share a group, a power of two up to 32 or all along x, in an order that their number alone
// fixes; each of them gets it. All threads of the block take part.
__device__ __forceinline__ float group_sum(float value, int threads) {
  const int lanes = min(threads, 32);
  for (int distance = lanes / 2; distance >= 1; distance /= 2) {
    value = value + __shfl_xor_sync(0xFFFFFFFFU, value, distance);
  }
  if (threads <= 32) return value;
  __shared__ float warp_sums[32];
  const auto warps = static_cast<int>(blockDim.x) / 32;  // of the row
  float* of_row = warp_sums + static_cast<int>(threadIdx.y) * warps;
  if (threadIdx.x % 32 == 0) of_row[threadIdx.x / 32] = value;
  __syncthreads();
  float sum = 0.0F;
  for (int warp = 0; warp < warps; ++warp) sum = sum + of_row[warp];
  return sum;
}

}  // namespace replayeval::cuda
