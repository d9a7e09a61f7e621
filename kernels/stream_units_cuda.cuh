// How stream_cuda.cuh cuts a batch: units of kUnitTiles state tiles of one sequence, all of one group of heads.
#pragma once

#include "kernels/launch_cuda.cuh"
#include "kernels/tile_cuda.cuh"

#include <cstdint>

namespace replayeval::cuda {

using StreamTile = Tile128<true>;
inline constexpr int kTileRows = 64;
inline constexpr int kTileColumns = StreamTile::kMaxStateSize;
inline constexpr int kUnitTiles = 4;
inline constexpr int kUnitRows = kUnitTiles * kTileRows;

// Division by a number that a launch knows, of values below 2^31 (Granlund & Montgomery 1994).
struct Divisor {
  unsigned by = 1, factor = 0, shift = 0;

  Divisor() = default;
  explicit Divisor(int divisor) : by(static_cast<unsigned>(divisor)) {
    unsigned log2 = 0;
    while ((1U << log2) < by) ++log2;
    factor = static_cast<unsigned>(((std::uint64_t{1} << (31 + log2)) + by - 1) / by);
    shift = log2 - 1;
  }
  __device__ __forceinline__ int divide(int value) const {
    return by == 1 ? value : static_cast<int>(__umulhi(static_cast<unsigned>(value), factor) >> shift);
  }
};

// How a batch is cut into units.
struct StreamCut {
  int units_per_row = 0;
  int units = 0;
  int head_rows_log2 = 0;  // a head has 64, 128 or 256 rows
  Divisor per_row, per_group;
  int stages = 0;      // tiles in shared memory
  int ring_bytes = 0;  // of a unit's ring, at most; a multiple of 16

  StreamCut() = default;
  StreamCut(const HeadShape& shape, std::int64_t batch)
      : units_per_row(shape.heads * shape.rows / kUnitRows),
        units(static_cast<int>(batch * units_per_row)),
        head_rows_log2(shape.rows == 64    ? 6
                       : shape.rows == 128 ? 7
                                           : 8),
        per_row(units_per_row),
        per_group(units_per_row / shape.groups) {}
};

// Whether a batch can be cut so, into at least so many units.
inline bool streams(const HeadShape& shape, std::int64_t batch, std::int64_t least_units) {
  const bool whole_tiles = shape.rows == 64 || shape.rows == 128 || shape.rows == 256;
  if (shape.columns != kTileColumns || !whole_tiles || shape.heads / shape.groups * shape.rows % kUnitRows != 0) {
    return false;
  }
  const std::int64_t units = batch * shape.heads * shape.rows / kUnitRows;
  return units >= least_units && units < (1 << 30);
}

struct Unit {
  int row;                // of the batch
  int first_row;          // of the sequence's rows of all heads, which the unit's kUnitRows follow
  int first_head, heads;  // whose rows these are
  int group;              // of these heads
  bool leads_group;       // has the group's first rows
  int head_rows_log2;

  __device__ __forceinline__ Unit(const StreamCut& cut, int unit) : head_rows_log2(cut.head_rows_log2) {
    row = cut.per_row.divide(unit);
    const int in_row = unit - row * cut.units_per_row;
    first_row = in_row * kUnitRows;
    first_head = first_row >> head_rows_log2;
    heads = kUnitRows >> head_rows_log2;
    group = cut.per_group.divide(in_row);
    leads_group = in_row == group * static_cast<int>(cut.per_group.by);
  }
  // Of one of the unit's rows: the head among the unit's, and the row in it.
  __device__ __forceinline__ int head_of(int unit_row) const { return unit_row >> head_rows_log2; }
  __device__ __forceinline__ int row_in_head(int unit_row) const { return unit_row & ((1 << head_rows_log2) - 1); }
};

// The first of the four columns, or rows of 128, that are the lane's; and where its values go.
__device__ __forceinline__ int unit_column() { return static_cast<int>(threadIdx.x) % 32 * 4; }
__device__ __forceinline__ void put(const float (&values)[4], float* to) {
  *reinterpret_cast<float4*>(to) = make_float4(values[0], values[1], values[2], values[3]);
}

}  // namespace replayeval::cuda
