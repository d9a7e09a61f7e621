// A tile of one head's state in a block's registers, and the one place where the CUDA kernels' state arithmetic is
// written.
//
// kLanes lanes of a warp share a row: lane i holds the columns 4i..4i+3, and with kVectors 2 also 4 kLanes further on.
// A lane holds kRows rows. A sum over a row adds a lane's columns in ascending order, then the lanes pairwise from far
// to near. Only state_size chooses the layout, so the order of a sum depends on the shape alone. How many warps a block
// has is free: it moves rows between blocks, never changes how one is summed.
#pragma once

#include "kernels/storage_cuda.cuh"

#include <cstdint>

namespace replayeval::cuda {

// Sums each of kRows values over kLanes lanes. While rows are left to give away, a lane keeps half of its rows and
// hands the other half to its partner, so that eight sums take 9 exchanges instead of 40. Lane i of a row's lanes gets
// the sum of row i / (kLanes / kRows). All lanes of the warp take part.
template <int kLanes, int kRows>
__device__ __forceinline__ float fold(float (&sum)[kRows]) {
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

// kWhole: state_size is all that the layout holds, known to the compiler.
template <int kRowLanes, int kRowVectors, int kLaneRows, bool kWhole>
struct Tile {
  static constexpr int kLanes = kRowLanes;
  static constexpr int kVectors = kRowVectors;
  static constexpr int kRows = kLaneRows;
  static constexpr bool kIsWhole = kWhole;
  static constexpr int kMaxStateSize = 4 * kLanes * kVectors;
  static constexpr int kWarpRows = kRows * (32 / kLanes);

  // Where this thread stands.
  int block_row;  // of its kRows rows, within the block
  bool active;    // its rows exist (a whole warp's do or do not)
  float s[kRows][kVectors][4];

  // As stored: converting what was loaded waits for the memory, so it is a step of its own.
  template <Dtype kState>
  using Stored = Packed4<kState>[kRows][kVectors];

  // state_size: the length of a row; `rows`: how many of the head's rows the block has.
  __device__ __forceinline__ Tile(int state_size, int rows) : given_size_(state_size) {
    block_row = static_cast<int>(threadIdx.x / 32) * kWarpRows + static_cast<int>(threadIdx.x % 32) / kLanes * kRows;
    active = block_row < rows;
  }

  __device__ static __forceinline__ int column_of(int v) {
    return static_cast<int>(threadIdx.x % kLanes) * 4 + v * 4 * kLanes;
  }
  __device__ __forceinline__ int state_size() const { return kWhole ? kMaxStateSize : given_size_; }
  __device__ __forceinline__ bool holds(int v) const { return kWhole || column_of(v) < given_size_; }

  __device__ __forceinline__ void fill(float value) {
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
#pragma unroll
      for (int v = 0; v < kVectors; ++v) s[r][v][0] = s[r][v][1] = s[r][v][2] = s[r][v][3] = value;
    }
  }

  // block_offset: of the block's first row, in elements.
  template <Dtype kState>
  __device__ __forceinline__ void load(const void* state, std::int64_t block_offset, Stored<kState>& to) const {
    const std::int64_t first = block_offset + block_row * state_size() + column_of(0);
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
#pragma unroll
      for (int v = 0; v < kVectors; ++v) {
        to[r][v] = {};
        if (active && holds(v)) to[r][v].load(state, first + r * state_size() + v * 4 * kLanes);
      }
    }
  }

  template <Dtype kState>
  __device__ __forceinline__ void unpack(const Stored<kState>& from) {
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
#pragma unroll
      for (int v = 0; v < kVectors; ++v) from[r][v].unpack(s[r][v]);
    }
  }

  // What a store would write; adds to `counts` where counting.
  template <Dtype kState>
  __device__ __forceinline__ void pack(bool saturate, bool counting, ThreadCounts& counts, Stored<kState>& to) {
    if (counting) count_stores<kState>(saturate, counts);
    if (kState != Dtype::float32 && saturate) saturate_all<kState>();
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
#pragma unroll
      for (int v = 0; v < kVectors; ++v) to[r][v].pack(s[r][v]);
    }
  }

  template <Dtype kState>
  __device__ __forceinline__ void store(void* state, std::int64_t block_offset, const Stored<kState>& from) const {
    const std::int64_t first = block_offset + block_row * state_size() + column_of(0);
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
#pragma unroll
      for (int v = 0; v < kVectors; ++v) {
        if (active && holds(v)) from[r][v].store(state, first + r * state_size() + v * 4 * kLanes);
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

  // Column c times by[c]; `by` in shared memory.
  __device__ __forceinline__ void multiply_columns(const float* by) {
#pragma unroll
    for (int v = 0; v < kVectors; ++v) {
      if (!holds(v)) continue;
      const float4 b = *reinterpret_cast<const float4*>(by + column_of(v));
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
        s[r][v][0] = b.x * s[r][v][0];
        s[r][v][1] = b.y * s[r][v][1];
        s[r][v][2] = b.z * s[r][v][2];
        s[r][v][3] = b.w * s[r][v][3];
      }
    }
  }

  // S += (weight x) B^T; x points at this thread's first row, B at column 0, both in shared memory.
  __device__ __forceinline__ void add_outer(float weight, const float* x, const float* B) {
    if (!active) return;
    float factor[kRows];
#pragma unroll
    for (int r = 0; r < kRows; ++r) factor[r] = weight * x[r];
    add_outer(factor, B);
  }

  // S += factor B^T with this thread's rows of the factor.
  __device__ __forceinline__ void add_outer(const float (&factor)[kRows], const float* B) {
    float b[kVectors][4];
    load_columns(B, b);
    add_outer(factor, b);
  }

  // The same with this lane's columns of B.
  __device__ __forceinline__ void add_outer(const float (&factor)[kRows], const float (&B)[kVectors][4]) {
#pragma unroll
    for (int v = 0; v < kVectors; ++v) {
      if (!holds(v)) continue;
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
#pragma unroll
        for (int i = 0; i < 4; ++i) s[r][v][i] = fmaf(factor[r], B[v][i], s[r][v][i]);
      }
    }
  }

  // This lane's columns of a row in shared memory.
  __device__ __forceinline__ void load_columns(const float* row, float (&to)[kVectors][4]) const {
#pragma unroll
    for (int v = 0; v < kVectors; ++v) {
      if (holds(v)) load4<Dtype::float32>(row, column_of(v), to[v]);
    }
  }

  // S C for this warp's rows. Each lane gets the sum of the row own_row(); all lanes of the warp take part.
  __device__ __forceinline__ float dot(const float* C) const {
    float c[kVectors][4];
    load_columns(C, c);
    return dot(c);
  }

  // The same with this lane's columns of C.
  __device__ __forceinline__ float dot(const float (&C)[kVectors][4]) const {
    float sum[kRows];
#pragma unroll
    for (int r = 0; r < kRows; ++r) sum[r] = 0.0F;
#pragma unroll
    for (int v = 0; v < kVectors; ++v) {
      if (!holds(v)) continue;
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
#pragma unroll
        for (int i = 0; i < 4; ++i) sum[r] = fmaf(s[r][v][i], C[v][i], sum[r]);
      }
    }
    return fold<kLanes>(sum);
  }

  // What dot() left in the lanes of a row's group, one value a row, in every lane of the group. All lanes of the warp
  // take part.
  __device__ static __forceinline__ void spread(float own, float (&to)[kRows]) {
    const int first = static_cast<int>(threadIdx.x) % 32 / kLanes * kLanes;
#pragma unroll
    for (int r = 0; r < kRows; ++r) to[r] = __shfl_sync(0xFFFFFFFFU, own, first + r * (kLanes / kRows));
  }

  // The row within block_row.. whose sum dot() leaves in this lane, and whether this lane is the one to write it.
  __device__ static __forceinline__ int own_row() { return static_cast<int>(threadIdx.x) % kLanes / (kLanes / kRows); }
  __device__ __forceinline__ bool writes_row() const { return active && threadIdx.x % (kLanes / kRows) == 0; }

 private:
  template <Dtype kState>
  __device__ __forceinline__ void saturate_all() {
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
#pragma unroll
      for (int v = 0; v < kVectors; ++v) {
#pragma unroll
        for (int i = 0; i < 4; ++i) s[r][v][i] = saturated<kState>(s[r][v][i]);
      }
    }
  }

  template <Dtype kState>
  __device__ __forceinline__ void count_stores(bool saturate, ThreadCounts& counts) const {
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
#pragma unroll
      for (int v = 0; v < kVectors; ++v) {
        if (!active || !holds(v)) continue;
#pragma unroll
        for (int i = 0; i < 4; ++i) count<kState>(s[r][v][i], saturate, counts);
      }
    }
  }

  int given_size_;
};

template <bool kWhole>
using Tile64 = Tile<16, 1, 4, kWhole>;
template <bool kWhole>
using Tile128 = Tile<32, 1, 8, kWhole>;
using Tile256 = Tile<32, 2, 4, false>;

// B_j · C for two consecutive rows j of a matrix with the tile's columns, by one warp in the tile's order of sums:
// lanes 0..15 get the first row's sum, lanes 16..31 the second's. `load(row, v, to)` gives this lane's four columns.
template <class T, class LoadRow>
__device__ __forceinline__ float dot_two_rows(const float (&C)[T::kVectors][4], int state_size, const LoadRow& load) {
  constexpr int kLaneRows = T::kLanes / 16;  // a half of the warp has a row of its own, or both halves have both
  const int own = T::kLanes == 16 ? static_cast<int>(threadIdx.x) % 32 / 16 : 0;
  float sum[kLaneRows];
  float b[kLaneRows][T::kVectors][4];
#pragma unroll
  for (int r = 0; r < kLaneRows; ++r) {
#pragma unroll
    for (int v = 0; v < T::kVectors; ++v) {
      if (T::column_of(v) < state_size) load(own + r, v, b[r][v]);
    }
  }
#pragma unroll
  for (int r = 0; r < kLaneRows; ++r) {
    sum[r] = 0.0F;
#pragma unroll
    for (int v = 0; v < T::kVectors; ++v) {
      if (T::column_of(v) >= state_size) continue;
#pragma unroll
      for (int i = 0; i < 4; ++i) sum[r] = fmaf(b[r][v][i], C[v][i], sum[r]);
    }
  }
  return fold<T::kLanes>(sum);
}

// to[j] = rows_j · x for j < count, in the tile's order of sums; rows [count, state_size], x and to in shared memory.
// `to` has room for one value more.
template <class T>
__device__ __forceinline__ void shared_dots(const float* rows, const float* x, int count, int state_size, float* to) {
  float at[T::kVectors][4];
#pragma unroll
  for (int v = 0; v < T::kVectors; ++v) {
    if (T::column_of(v) < state_size) load4<Dtype::float32>(x, T::column_of(v), at[v]);
  }
  const auto warps = static_cast<int>(blockDim.x) / 32;
  for (int j = static_cast<int>(threadIdx.x) / 32 * 2; j < count; j += 2 * warps) {
    const float dot = dot_two_rows<T>(at, state_size, [&](int row, int v, float(&values)[4]) {
      const int entry = min(j + row, count - 1);  // the row past the end is not used
      load4<Dtype::float32>(rows, entry * state_size + T::column_of(v), values);
    });
    if (threadIdx.x % 16 == 0) to[j + static_cast<int>(threadIdx.x) % 32 / 16] = dot;
  }
}

}  // namespace replayeval::cuda
