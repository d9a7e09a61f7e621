// A tile of one head's state in a block's registers, and the one place where the CUDA kernels' state arithmetic is
// written.
//
// kLanes lanes of a warp share a row: lane i holds the columns 4i..4i+3, and with kVectors 2 also 4 kLanes further on. A
// lane holds kRows rows. A sum over a row adds a lane's columns in ascending order, then the lanes pairwise from far to
// near. Only state_size chooses the layout, so the order of a sum depends on the shape alone. How many warps a block has
// is free: it moves rows between blocks, never changes how one is summed.
#pragma once

#include "kernels/mamba2/mamba2.h"
#include "kernels/storage_cuda.cuh"

#include <cstdint>

namespace replayeval::mamba2::cuda {

using namespace replayeval::cuda;

template <int kLanes, int kVectors, int kRows>
struct Tile {
  static constexpr int kMaxStateSize = 4 * kLanes * kVectors;
  static constexpr int kWarpRows = kRows * (32 / kLanes);

  // Where this thread stands.
  int first_row;           // of its kRows rows, within the head
  int column;              // of its first vector
  int state_size;
  bool active;             // its rows exist (a whole warp's do or do not)
  float s[kRows][kVectors][4];

  __device__ __forceinline__ Tile(const Shape& shape, int first_row_of_block) {
    const int warp = threadIdx.x / 32;
    const int lane = threadIdx.x % 32;
    first_row = first_row_of_block + warp * kWarpRows + lane / kLanes * kRows;
    column = lane % kLanes * 4;
    state_size = static_cast<int>(shape.state_size);
    active = first_row < shape.head_dim;
  }

  __device__ __forceinline__ int column_of(int v) const { return column + v * 4 * kLanes; }
  __device__ __forceinline__ bool holds(int v) const { return column_of(v) < state_size; }
  __device__ __forceinline__ std::int64_t index(std::int64_t head_offset, int row, int v) const {
    return head_offset + static_cast<std::int64_t>(first_row + row) * state_size + column_of(v);
  }

  __device__ __forceinline__ void fill(float value) {
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
#pragma unroll
      for (int v = 0; v < kVectors; ++v) s[r][v][0] = s[r][v][1] = s[r][v][2] = s[r][v][3] = value;
    }
  }

  template <Dtype kState>
  __device__ __forceinline__ void load(const void* state, std::int64_t head_offset) {
    fill(0.0F);
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
#pragma unroll
      for (int v = 0; v < kVectors; ++v) {
        if (active && holds(v)) load4<kState>(state, index(head_offset, r, v), s[r][v]);
      }
    }
  }

  template <Dtype kState>
  __device__ __forceinline__ void store(void* state, std::int64_t head_offset, bool saturate) const {
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
#pragma unroll
      for (int v = 0; v < kVectors; ++v) {
        if (active && holds(v)) store4<kState>(state, index(head_offset, r, v), s[r][v], saturate);
      }
    }
  }

  // What storing and loading again would make of it.
  template <Dtype kState>
  __device__ __forceinline__ void round(bool saturate, bool counting, ThreadCounts& counts) {
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
#pragma unroll
      for (int v = 0; v < kVectors; ++v) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          if (counting && active && holds(v)) count<kState>(s[r][v][i], saturate, counts);
          s[r][v][i] = rounded<kState>(s[r][v][i], saturate);
        }
      }
    }
  }

  __device__ __forceinline__ void multiply(float by) {
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
#pragma unroll
      for (int v = 0; v < kVectors; ++v) {
#pragma unroll
        for (int i = 0; i < 4; ++i) s[r][v][i] = by * s[r][v][i];
      }
    }
  }

  // S += (weight x) B^T; x points at this thread's first row, B at column 0, both in shared memory.
  __device__ __forceinline__ void add_outer(float weight, const float* x, const float* B) {
    if (!active) return;
    float factor[kRows];
#pragma unroll
    for (int r = 0; r < kRows; ++r) factor[r] = weight * x[r];
#pragma unroll
    for (int v = 0; v < kVectors; ++v) {
      if (!holds(v)) continue;
      const float4 b = *reinterpret_cast<const float4*>(B + column_of(v));
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
        s[r][v][0] = fmaf(factor[r], b.x, s[r][v][0]);
        s[r][v][1] = fmaf(factor[r], b.y, s[r][v][1]);
        s[r][v][2] = fmaf(factor[r], b.z, s[r][v][2]);
        s[r][v][3] = fmaf(factor[r], b.w, s[r][v][3]);
      }
    }
  }

  // S C for this warp's rows. Each lane gets the sum of the row own_row(); all lanes of the warp take part.
  __device__ __forceinline__ float dot(const float* C) const {
    float sum[kRows];
#pragma unroll
    for (int r = 0; r < kRows; ++r) sum[r] = 0.0F;
#pragma unroll
    for (int v = 0; v < kVectors; ++v) {
      if (!holds(v)) continue;
      const float4 c = *reinterpret_cast<const float4*>(C + column_of(v));
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
        sum[r] = fmaf(s[r][v][0], c.x, sum[r]);
        sum[r] = fmaf(s[r][v][1], c.y, sum[r]);
        sum[r] = fmaf(s[r][v][2], c.z, sum[r]);
        sum[r] = fmaf(s[r][v][3], c.w, sum[r]);
      }
    }
    return fold(sum);
  }

  // The row within first_row.. whose sum fold() leaves in this lane, and whether this lane is the one to write it.
  __device__ __forceinline__ int own_row() const { return threadIdx.x % kLanes / (kLanes / kRows); }
  __device__ __forceinline__ bool writes_row() const { return active && threadIdx.x % (kLanes / kRows) == 0; }

 private:
  // Sums each of kRows values over kLanes lanes. While rows are left to give away, a lane keeps half of its rows and
  // hands the other half to its partner, so that eight sums take 9 exchanges instead of 40.
  __device__ static __forceinline__ float fold(float (&sum)[kRows]) {
    int distance = kLanes / 2;
#pragma unroll
    for (int half = kRows / 2; half >= 1; half /= 2) {
      const bool upper = (threadIdx.x & distance) != 0;
#pragma unroll
      for (int r = 0; r < half; ++r) {
        const float given = upper ? sum[r] : sum[r + half];
        const float kept = upper ? sum[r + half] : sum[r];
        sum[r] = kept + __shfl_xor_sync(0xFFFFFFFFU, given, distance);
      }
      distance /= 2;
    }
#pragma unroll
    for (; distance >= 1; distance /= 2) sum[0] = sum[0] + __shfl_xor_sync(0xFFFFFFFFU, sum[0], distance);
    return sum[0];
  }
};

using Tile64 = Tile<16, 1, 4>;
using Tile128 = Tile<32, 1, 8>;
using Tile256 = Tile<32, 2, 4>;

// Sum of a[i] b[i] over n values in shared memory, by one warp; every lane gets it. n is a multiple of 4, at most 256.
__device__ __forceinline__ float warp_dot(const float* a, const float* b, int n) {
  float sum = 0.0F;
  for (int i = threadIdx.x % 32 * 4; i < n; i += 128) {
    const float4 x = *reinterpret_cast<const float4*>(a + i);
    const float4 y = *reinterpret_cast<const float4*>(b + i);
    sum = fmaf(x.x, y.x, sum);
    sum = fmaf(x.y, y.y, sum);
    sum = fmaf(x.z, y.z, sum);
    sum = fmaf(x.w, y.w, sum);
  }
#pragma unroll
  for (int distance = 16; distance >= 1; distance /= 2) sum = sum + __shfl_xor_sync(0xFFFFFFFFU, sum, distance);
  return sum;
}

}  // namespace replayeval::mamba2::cuda
