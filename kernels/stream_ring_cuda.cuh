// A unit's part of a replay ring in shared memory, as stored, for the kernels of stream_cuda.cuh.
#pragma once

#include "kernels/stream_cuda.cuh"

namespace replayeval::cuda {

// What a family's ring is called here: columns, [slots, groups, L, kTileColumns], which a group's heads share (B or k);
// rows, [slots, heads, L, head_rows] (x or d); scalars, [slots, heads, L] (dt or g).
struct RingView {
  const void* columns;
  const void* rows;
  const float* scalars;
  std::int64_t groups, heads;
};

// Layout: columns [L, kTileColumns]; for each head rows [L, head_rows] and 16 bytes between heads, so that lanes of
// different heads read from different banks; scalars [heads, L].
template <Dtype kRing>
struct UnitRing {
  static constexpr int kSize = kRing == Dtype::float32 ? 4 : 2;
  int buffer_len, head_rows, heads;

  __host__ __device__ __forceinline__ UnitRing(std::int64_t length, std::int64_t rows_of_a_head)
      : buffer_len(static_cast<int>(length)),
        head_rows(static_cast<int>(rows_of_a_head)),
        heads(kUnitRows / head_rows) {}

  __host__ __device__ __forceinline__ int rows_begin() const { return buffer_len * kTileColumns * kSize; }
  __host__ __device__ __forceinline__ int head_stride() const { return buffer_len * head_rows * kSize + 16; }
  __host__ __device__ __forceinline__ int scalars_begin() const { return rows_begin() + heads * head_stride(); }
  __host__ __device__ __forceinline__ int scalar_bytes() const {
    return heads * buffer_len * static_cast<int>(sizeof(float));
  }
  __host__ __device__ __forceinline__ int bytes() const { return scalars_begin() + scalar_bytes(); }

  // A row of the unit: its head among the unit's, its first entry's element, and from entry to entry head_rows
  // elements.
  __device__ __forceinline__ int head_of(int row) const { return row / head_rows; }
  __device__ __forceinline__ const char* row(const char* memory, int row) const {
    return memory + rows_begin() + head_of(row) * head_stride() + row % head_rows * kSize;
  }
  __device__ __forceinline__ const float* scalars(const char* memory) const {
    return reinterpret_cast<const float*>(memory + scalars_begin());
  }

  // Copies `entries` entries, all scalars with them; what copied_bytes() says comes to `barrier`.
  __device__ __forceinline__ unsigned copied_bytes(int entries) const {
    if (entries == 0) return 0;
    return static_cast<unsigned>(entries * (kTileColumns + kUnitRows) * kSize + scalar_bytes());
  }
  __device__ __forceinline__ void copy(const RingView& from, int slot, int group, int first_head, int entries,
                                       char* memory, Barrier& barrier) const {
    if (entries == 0) return;
    const std::int64_t group_entry = (slot * from.groups + group) * buffer_len;
    const std::int64_t head_entry = (slot * from.heads + first_head) * buffer_len;
    copy_bulk(memory, static_cast<const char*>(from.columns) + group_entry * kTileColumns * kSize,
              static_cast<unsigned>(entries * kTileColumns * kSize), barrier);
    copy_bulk(memory + scalars_begin(), from.scalars + head_entry, static_cast<unsigned>(scalar_bytes()), barrier);
    const std::int64_t head_bytes = static_cast<std::int64_t>(buffer_len) * head_rows * kSize;
    const char* rows = static_cast<const char*>(from.rows) + head_entry * head_rows * kSize;
    for (int k = 0; k < heads; ++k) {
      copy_bulk(memory + rows_begin() + k * head_stride(), rows + k * head_bytes,
                static_cast<unsigned>(entries * head_rows * kSize), barrier);
    }
  }
};

// Whether the scalars can be copied in bulk: as for all of the ring, addresses and sizes are multiples of 16 bytes.
inline bool copies_scalars(const float* scalars, std::int64_t buffer_len, std::int64_t head_rows) {
  return reinterpret_cast<std::uintptr_t>(scalars) % 16 == 0 && kUnitRows / head_rows * buffer_len % 4 == 0;
}

template <Dtype kRing>
__device__ __forceinline__ float ring_element(const char* row, int index) {
  if constexpr (kRing == Dtype::float32) return reinterpret_cast<const float*>(row)[index];
  return decode_bfloat16(reinterpret_cast<const std::uint16_t*>(row)[index]);
}

// S <- scale S, then S += (weight[j] rows_j) columns_j^T for j = 0 … count - 1. row: this thread's first.
template <Dtype kRing>
__device__ __forceinline__ void add_entries(StreamTile& tile, const char* columns, const char* row, int head_rows,
                                            int count, float scale, const float* weight) {
  tile.multiply(scale);
  for (int j = 0; j < count; ++j) {
    float column[1][4];
    load4<kRing>(columns, j * kTileColumns + StreamTile::column_of(0), column[0]);
    float factor[StreamTile::kRows];
#pragma unroll
    for (int r = 0; r < StreamTile::kRows; r += 4) {
      float values[4];
      load4<kRing>(row, j * head_rows + r, values);
#pragma unroll
      for (int i = 0; i < 4; ++i) factor[r + i] = weight[j] * values[i];
    }
    tile.add_outer(factor, column);
  }
}

// to[j] = columns_j · x of the ring's `count` entries and then of the token's own, `token`, which is not rounded; two a
// warp, in the tile's order of sums. `to` has room for one value more.
template <Dtype kRing>
__device__ __forceinline__ void ring_dots(const char* columns, const float* token, int count, const float (&x)[1][4],
                                          float* to) {
  for (int j = static_cast<int>(threadIdx.x) / 32 * 2; j <= count; j += 2 * kComputeWarps) {
    const float dot = dot_two_rows<StreamTile>(x, kTileColumns, [&](int row, int v, float(&values)[4]) {
      const int column = StreamTile::column_of(v);
      if (j + row < count) {
        load4<kRing>(columns, (j + row) * kTileColumns + column, values);
      } else {  // the token's; a row past it is not used
        load4<Dtype::float32>(token, column, values);
      }
    });
    if (threadIdx.x % 16 == 0) to[j + static_cast<int>(threadIdx.x) % 32 / 16] = dot;
  }
}

}  // namespace replayeval::cuda
