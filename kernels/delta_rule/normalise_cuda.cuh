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
__device__ __forceinline__ float lane_squares(int count, const float (&row)[kVectors][4]) {
  float squares = 0.0F;
#pragma unroll
  for (int k = 0; k < kVectors; ++k) {
    if (static_cast<int>(threadIdx.x) % 32 * 4 + 128 * k >= count) continue;
#pragma unroll
    for (int i = 0; i < 4; ++i) squares = fmaf(row[k][i], row[k][i], squares);
  }
  return squares;
}

// By the sum of its squares.
template <int kVectors>
__device__ __forceinline__ void normalise_row_by(float squares, const Parameters& p, Dtype compute,
                                                 float (&row)[kVectors][4]) {
  multiply_row(row, 1.0F / sqrtf(squares + kNormEps));
  if (p.numerics.qk_norm == Precision::float32) return;
#pragma unroll
  for (int k = 0; k < kVectors; ++k) {
#pragma unroll
    for (int i = 0; i < 4; ++i) row[k][i] = at_precision(row[k][i], Precision::compute, compute);
  }
}

template <int kVectors>
__device__ __forceinline__ void normalise_row(const Parameters& p, Dtype compute, int count,
                                              float (&row)[kVectors][4]) {
  float squares = lane_squares(count, row);
#pragma unroll
  for (int distance = 16; distance >= 1; distance /= 2) {
    squares = squares + __shfl_xor_sync(0xFFFFFFFFU, squares, distance);
  }
  normalise_row_by(squares, p, compute, row);
}

// Two at once, each as alone.
template <int kVectors>
__device__ __forceinline__ void normalise_rows(const Parameters& p, Dtype compute, int count, float (&a)[kVectors][4],
                                               float (&b)[kVectors][4]) {
  float squares_a = lane_squares(count, a);
  float squares_b = lane_squares(count, b);
#pragma unroll
  for (int distance = 16; distance >= 1; distance /= 2) {
    squares_a = squares_a + __shfl_xor_sync(0xFFFFFFFFU, squares_a, distance);
    squares_b = squares_b + __shfl_xor_sync(0xFFFFFFFFU, squares_b, distance);
  }
  normalise_row_by(squares_a, p, compute, a);
  normalise_row_by(squares_b, p, compute, b);
}

}  // namespace replayeval::delta_rule::cuda
