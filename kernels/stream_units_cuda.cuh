// How stream_cuda.cuh cuts a batch: units of kUnitTiles state tiles of one sequence, all of one group of heads.
#pragma once

#include "kernels/launch_cuda.cuh"
#include "kernels/tile_cuda.cuh"

#include <algorithm>
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
  int turn = 0;        // of BlockUnits
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

// The units of a block: of each gridDim.x units one, the same place among them in every round, or in every second one
// cut.turn places further on.
class BlockUnits {
 public:
  explicit __device__ __forceinline__ BlockUnits(const StreamCut& cut) : cut_(cut) {}

  __device__ __forceinline__ int unit() const { return static_cast<int>(unit_after(0)); }
  __device__ __forceinline__ bool there() const { return unit() < cut_.units; }
  __device__ __forceinline__ void next() { ++round_; }
  // After `count` more.
  __device__ __forceinline__ std::int64_t unit_after(int count) const {
    const auto blocks = static_cast<int>(gridDim.x);
    const int round = round_ + count;
    int place = static_cast<int>(blockIdx.x) + (round % 2 == 0 ? 0 : cut_.turn);
    if (place >= blocks) place -= blocks;
    return static_cast<std::int64_t>(round) * blocks + place;
  }

 private:
  const StreamCut& cut_;
  int round_ = 0;
};

// Where each sequence is one ring position ahead of the one before, those at the same position are a buffer's length
// apart. If a round has about so many sequences, or a multiple, a block would have the same positions in every round,
// and some blocks all the flushes: it turns by half a buffer's length, of the usual 16 tokens.
inline int turn_of(const StreamCut& cut, int blocks) {
  const int period = 16 * cut.units_per_row;
  const int beyond = blocks % period;
  return std::min(beyond, period - beyond) * 8 <= period ? period / 2 % blocks : 0;
}

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
