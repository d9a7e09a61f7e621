// Normalised queries and keys on the GPU, by one warp: lane i has the columns 4i..4i+3 and, of wide rows, those 128
// further on.
#pragma once

#include "kernels/delta_rule/scalars_cuda.cuh"

namespace replayeval::delta_rule::cuda {

template <int kVectors>
__device__ __forceinline__ void multiply_row(float (&row)[kVectors][4], float by) {
#pragma unroll
  for (int k = 0; k < kVectors; ++k) {
#pragma unroll
    for (int i = 0; i < 4; ++i) row[k][i] = by * row[k][i];
  }
}

// A lane's columns in ascending order, then the lanes pairwise: an order that the key dim alone fixes. All lanes of the
// warp take part.
template <int kVectors>
__device__ __forceinline__ void normalise_row(const Parameters& p, Dtype compute, int count,
                                              float (&row)[kVectors][4]) {
  float squares = 0.0F;
#pragma unroll
  for (int k = 0; k < kVectors; ++k) {
    if (static_cast<int>(threadIdx.x) % 32 * 4 + 128 * k >= count) continue;
#pragma unroll
    for (int i = 0; i < 4; ++i) squares = fmaf(row[k][i], row[k][i], squares);
  }
#pragma unroll
  for (int distance = 16; distance >= 1; distance /= 2) {
    squares = squares + __shfl_xor_sync(0xFFFFFFFFU, squares, distance);
  }
  multiply_row(row, 1.0F / sqrtf(squares + kNormEps));
  if (p.numerics.qk_norm == Precision::float32) return;
#pragma unroll
  for (int k = 0; k < kVectors; ++k) {
#pragma unroll
    for (int i = 0; i < 4; ++i) row[k][i] = at_precision(row[k][i], Precision::compute, compute);
  }
}

}  // namespace replayeval::delta_rule::cuda
