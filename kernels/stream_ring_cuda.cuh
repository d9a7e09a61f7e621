// A unit's part of a replay ring in shared memory, as stored, for the kernels of stream_cuda.cuh.
#pragma once

#include "kernels/entry_products_cuda.cuh"
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

// Layout: columns [L, kTileColumns], of whole chunks; for each head rows [L - 1, head_rows], the last entry being the
// token itself, and 16 bytes between heads, so that lanes of different heads read from different banks; scalars
// [heads, L]. What is spared makes room for a tile more.
template <Dtype kRing>
struct UnitRing {
  static constexpr int kSize = kRing == Dtype::float32 ? 4 : 2;
  int buffer_len, heads, head_rows;

  __host__ __device__ __forceinline__ UnitRing(std::int64_t length, int head_rows_log2)
      : buffer_len(static_cast<int>(length)), heads(kUnitRows >> head_rows_log2), head_rows(1 << head_rows_log2) {}

  __host__ __device__ __forceinline__ int rows_begin() const {
    return (buffer_len + kChunkEntries - 1) / kChunkEntries * kChunkEntries * kTileColumns * kSize;
  }
  __host__ __device__ __forceinline__ int head_stride() const { return (buffer_len - 1) * head_rows * kSize + 16; }
  __host__ __device__ __forceinline__ int scalars_begin() const { return rows_begin() + heads * head_stride(); }
  __host__ __device__ __forceinline__ int scalar_bytes() const {
    return heads * buffer_len * static_cast<int>(sizeof(float));
  }
  __host__ __device__ __forceinline__ int bytes() const { return (scalars_begin() + scalar_bytes() + 15) / 16 * 16; }

  // One of the unit's rows: its first entry's element; from entry to entry it is head_rows elements.
  __device__ __forceinline__ const char* row(const char* memory, const Unit& unit, int unit_row) const {
    return memory + rows_begin() + unit.head_of(unit_row) * head_stride() + unit.row_in_head(unit_row) * kSize;
  }
  __device__ __forceinline__ const float* scalars(const char* memory) const {
    return reinterpret_cast<const float*>(memory + scalars_begin());
  }

  // Copies `entries` entries, all scalars with them; what copied_bytes() says comes to `barrier`.
  __device__ __forceinline__ unsigned copied_bytes(int entries) const {
    if (entries == 0) return 0;
    return static_cast<unsigned>(entries * (kTileColumns + kUnitRows) * kSize + scalar_bytes());
  }
  __device__ __forceinline__ void copy(const RingView& from, int slot, const Unit& unit, int entries, char* memory,
                                       Barrier& barrier) const {
    if (entries == 0) return;
    const std::int64_t group_entry = (slot * from.groups + unit.group) * buffer_len;
    const std::int64_t head_entry = (slot * from.heads + unit.first_head) * buffer_len;
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
  // All of it to the L2 cache.
  __device__ __forceinline__ void prefetch(const RingView& from, int slot, const Unit& unit) const {
    const std::int64_t group_entry = (slot * from.groups + unit.group) * buffer_len;
    const std::int64_t head_entry = (slot * from.heads + unit.first_head) * buffer_len;
    prefetch_bulk(static_cast<const char*>(from.columns) + group_entry * kTileColumns * kSize,
                  static_cast<unsigned>(buffer_len * kTileColumns * kSize));
    prefetch_bulk(from.scalars + head_entry, static_cast<unsigned>(scalar_bytes()));
    prefetch_bulk(static_cast<const char*>(from.rows) + head_entry * head_rows * kSize,
                  static_cast<unsigned>(buffer_len * kUnitRows * kSize));
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

// Calls use(j, element) for one row's elements of the entries j = 0 … count - 1, in order; eight are under way at once.
template <Dtype kRing, class Use>
__device__ __forceinline__ void for_entries(const char* row, int stride, int count, const Use& use) {
  constexpr int kAtOnce = 8;
#pragma unroll 1
  for (int first = 0; first < count; first += kAtOnce) {
    float element[kAtOnce];
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) element[i] = ring_element<kRing>(row, min(first + i, count - 1) * stride);
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      if (first + i < count) use(first + i, element[i]);
    }
  }
}

// Each warp's own, while a flush adds entries: what they weigh times this warp's rows, one a lane.
inline constexpr int kFactorEntries = 32 / StreamTile::kRows;
struct FlushFactors {
  float of[kComputeWarps][kFactorEntries][StreamTile::kRows];
};

// S += (weight(j) rows_j) columns_j^T for j = 0 … count - 1. rows: of this warp's first row.
template <Dtype kRing, Dtype kColumns, class Weight>
__device__ __forceinline__ void add_weighed(StreamTile& tile, const char* columns, const char* rows, int head_rows,
                                            int count, const Weight& weight, FlushFactors& factors) {
  float(&own)[kFactorEntries][StreamTile::kRows] = factors.of[threadIdx.x / 32];
  const int own_entry = static_cast<int>(threadIdx.x) % 32 / StreamTile::kRows;
  const int row = static_cast<int>(threadIdx.x) % StreamTile::kRows;
  for (int first = 0; first < count; first += kFactorEntries) {
    const int entry = min(first + own_entry, count - 1);  // one past the end is not used
    const float factor_of_row = weight(entry) * ring_element<kRing>(rows, entry * head_rows + row);
    __syncwarp();
    own[own_entry][row] = factor_of_row;
    __syncwarp();
#pragma unroll
    for (int j = 0; j < kFactorEntries; ++j) {
      if (first + j >= count) break;
      float column[1][4];
      load4<kColumns>(columns, (first + j) * kTileColumns + StreamTile::column_of(0), column[0]);
      float factor[StreamTile::kRows];
#pragma unroll
      for (int r = 0; r < StreamTile::kRows; r += 4) {
        const float4 four = *reinterpret_cast<const float4*>(&own[j][r]);
        factor[r] = four.x, factor[r + 1] = four.y, factor[r + 2] = four.z, factor[r + 3] = four.w;
      }
      tile.add_outer(factor, column);
    }
  }
}

// S <- scale S, then S += (weight[j] rows_j) columns_j^T for j = 0 … count - 1.
template <Dtype kRing>
__device__ __forceinline__ void add_entries(StreamTile& tile, const char* columns, const char* rows, int head_rows,
                                            int count, float scale, const float* weight, FlushFactors& factors) {
  tile.multiply(scale);
  add_weighed<kRing, kRing>(
      tile, columns, rows, head_rows, count, [&](int j) { return weight[j]; }, factors);
}

template <Dtype kState, Dtype kRing>
inline constexpr bool kFlushTakesProducts = kTakesProducts<StreamTile, kState>&& kRing == Dtype::bfloat16;

// What take_flushed() wants beside the tile.
struct NoFactors {};
template <Dtype kState, Dtype kRing>
using FlushFactorsOf = std::conditional_t<kFlushTakesProducts<kState, kRing>, NoFactors, FlushFactors>;

// By the preparing warp, of a flush: makes the ring's columns ready for take_flushed().
template <Dtype kState, Dtype kRing>
__device__ __forceinline__ void prepare_flush(char* columns, int count) {
  if constexpr (kFlushTakesProducts<kState, kRing>) {
    for (int first = 0; first < count; first += kChunkEntries) {
      lay_out_columns(columns + first * kTileColumns * UnitRing<kRing>::kSize, count - first);
    }
    fence_before_copies();
  }
}

// What add_entries() needs to know of a head.
struct FlushEntries {
  const char* columns;
  const char* rows;  // of this warp's first row
  int head_rows, count;
  float scale;
  const float* weight;
};

// The unit's next tile, scaled and with the entries added; to be released.
template <Dtype kState, Dtype kRing>
__device__ __forceinline__ void take_flushed(Tiles<kState>& tiles, StreamTile& tile, const FlushEntries& e,
                                             FlushFactorsOf<kState, kRing>& factors) {
  if constexpr (!kFlushTakesProducts<kState, kRing>) {
    tiles.load(tile);
    add_entries<kRing>(tile, e.columns, e.rows, e.head_rows, e.count, e.scale, e.weight, factors);
  } else if (e.count == 0) {
    tiles.load(tile);
    tile.multiply(e.scale);
  } else {
    EntrySums sums;
    for (int first = 0; first < e.count; first += kChunkEntries) {
      sums.add_chunk(e.columns + first * kTileColumns * UnitRing<kRing>::kSize, [&](int j, int row) {
        const int entry = first + j;
        return entry < e.count ? e.weight[entry] * ring_element<kRing>(e.rows, entry * e.head_rows + row) : 0.0F;
      });
    }
    typename StreamTile::template Stored<kState> stored;
    tiles.load(stored);
    sums.for_tile([&](int r, int c, float sum) { tile.s[r][0][c] = fmaf(e.scale, stored[r][0].element(c), sum); });
  }
}

// One or two vectors and where their products go.
template <int kCount>
struct DotVectors {
  const float (*x[kCount])[1][4];
};
template <int kCount>
struct DotTargets {
  float* to[kCount];
};

// to[i][j] = columns_j · x[i] for the ring's first `count` entries, by one warp, in the tile's order of sums.
template <Dtype kRing, int kCount>
__device__ __forceinline__ void ring_dots(const char* columns, int count, const DotVectors<kCount>& vectors,
                                          const DotTargets<kCount>& targets) {
  constexpr int kAtOnce = 16;
  for (int first = 0; first < count; first += kAtOnce) {
    float sums[kCount * kAtOnce];
#pragma unroll
    for (int r = 0; r < kAtOnce; ++r) {
      float values[4];
      const int entry = min(first + r, count - 1);  // rows past the end are not used
      load4<kRing>(columns, entry * kTileColumns + StreamTile::column_of(0), values);
#pragma unroll
      for (int i = 0; i < kCount; ++i) sums[i * kAtOnce + r] = dot_share(values, *vectors.x[i]);
    }
    const float sum = fold_all<kCount * kAtOnce>(sums);
    const int index = static_cast<int>(threadIdx.x) % 32 / (32 / (kCount * kAtOnce));
    const int entry = first + index % kAtOnce;
    float* to = targets.to[0];
    if (kCount == 2 && index >= kAtOnce) to = targets.to[kCount - 1];
    if (entry < count) to[entry] = sum;  // where two lanes have it, the same value
  }
}

// The same for one row, a · x, of which each lane has its columns; in every lane.
__device__ __forceinline__ float row_dot(const float (&a)[4], const float (&x)[4]) {
  float sum[1] = {0.0F};
#pragma unroll
  for (int i = 0; i < 4; ++i) sum[0] = fmaf(a[i], x[i], sum[0]);
  return fold<StreamTile::kLanes>(sum);
}

// after[j] = the sum of the values of entries j + 1 … count - 1 of the lane's head, from the newest down; returns the
// sum of all. `values` are the ring's, `newest` that of entry count - 1. A head's lanes do this together; they may read
// `after` after a __syncwarp().
__device__ __forceinline__ float sums_after(const float* values, float newest, int count, float* after) {
  constexpr int kAtOnce = 8;
  float sum = 0.0F;
  for (int last = count - 1; last >= 0; last -= kAtOnce) {
    float next[kAtOnce];
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      const int j = last - i;
      next[i] = j == count - 1 ? newest : values[max(j, 0)];
    }
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      const int j = last - i;
      if (j < 0) break;
      if (j % kHeadLanes == head_lane()) after[j] = sum;
      sum = sum + next[i];
    }
  }
  return sum;
}

// What a job says of its ring: Job::ring_of(a) is a UnitRing, Job::view_of(a) where it lies.
template <class Job, class Arguments>
struct WithRing {
  __device__ static __forceinline__ int cursor(const Arguments& a, int slot) {
    const int cursor = a.ring.cursor[slot];
    return cursor < a.form.buffer_len ? cursor : -1;
  }
  __device__ static __forceinline__ unsigned copied_bytes(const Arguments& a, int cursor) {
    return Job::ring_of(a).copied_bytes(cursor);
  }
  __device__ static __forceinline__ void copy_ring(const Arguments& a, const Unit& unit, const Place& place, char* to,
                                                   Barrier& barrier) {
    Job::ring_of(a).copy(Job::view_of(a), place.slot, unit, place.cursor, to, barrier);
  }

  __device__ static __forceinline__ void prefetch_ring(const Arguments& a, const Unit& unit, int slot) {
    Job::ring_of(a).prefetch(Job::view_of(a), slot, unit);
  }
};

}  // namespace replayeval::cuda
