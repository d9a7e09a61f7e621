// Large batches on Hopper: a few blocks stay on each multiprocessor and the batch's state streams through their shared
// memory. One warp copies state and ring ahead, in bulk; eight warps compute. So reads never pause, neither between
// heads nor for a token's small operands.
//
// State tiles have kTileRows rows of kTileColumns columns and are read into the same Tile as everywhere, so the order
// of every sum is that of the other kernels. A unit of work is kUnitTiles tiles of one sequence, all of one group of
// heads. A family says what else its units need, as a Job:
//
//   Arguments            what its call got, among it block, state and out, and `cut`
//   kState               the state's dtype
//   Shared               what the computing warps share, in shared memory
//   cursor(a, slot)      the slot's ring position, -1 where it is out of range
//   operand_bytes(a, cursor), copy_operands(a, unit, place, to, barrier)
//                        what a unit's ring comes to, and the copies
//   Token                a token's inputs in registers: load(a, unit)
//   run(a, unit, place, token, next, operands, tiles, shared, parity, counts)
//                        computes a unit; calls next() once token's registers are free for the next unit's
#pragma once

#include "kernels/bulk_cuda.cuh"
#include "kernels/decode.h"
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
inline constexpr int kComputeThreads = 256;
inline constexpr int kComputeWarps = kComputeThreads / 32;
inline constexpr int kStreamThreads = kComputeThreads + 32;
// Blocks on a multiprocessor: 16-bit states take twice the arithmetic for a byte.
#ifndef F32_BLOCKS
#define F32_BLOCKS 1
#endif
template <Dtype kState>
inline constexpr int kStreamBlocks = kState == Dtype::float32 ? F32_BLOCKS : 2;
inline constexpr int kMaxStages = 8;
static_assert(StreamTile::kWarpRows * kComputeWarps == kTileRows);
static_assert(StreamTile::kRows * kUnitTiles == 32, "each lane finishes one row of one tile");

// Of the kernel's code as loaded, not of what the GPU could run.
template <class Kernel>
cudaFuncAttributes attributes_of(Kernel kernel) {
  cudaFuncAttributes attributes{};
  expect_success(cudaFuncGetAttributes(&attributes, kernel), "reading a kernel's attributes");
  return attributes;
}

inline int device_attribute(cudaDeviceAttr attribute) {
  int device = 0;
  int value = 0;
  expect_success(cudaGetDevice(&device), "cudaGetDevice");
  expect_success(cudaDeviceGetAttribute(&value, attribute, device), "reading the GPU's attributes");
  return value;
}

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
  int stages = 0;         // tiles in shared memory
  int operand_bytes = 0;  // of one unit, at most; a multiple of 16

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

// Whether a batch can be cut so and has units enough for every block to get one; fewer are cut finer by the other
// kernels.
inline bool streams(const HeadShape& shape, std::int64_t batch) {
  const bool whole_tiles = shape.rows == 64 || shape.rows == 128 || shape.rows == 256;
  if (shape.columns != kTileColumns || !whole_tiles || shape.heads / shape.groups * shape.rows % kUnitRows != 0) {
    return false;
  }
  const std::int64_t units = batch * shape.heads * shape.rows / kUnitRows;
  return units >= std::int64_t{2} * device_attribute(cudaDevAttrMultiProcessorCount) && units < (1 << 30);
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

// Where a unit's sequence stands; a cursor of -1: nothing to compute.
struct Place {
  int slot, cursor;
};

struct StreamBarriers {
  Barrier tile_full[kMaxStages], tile_empty[kMaxStages];
  Barrier operands_full[2], operands_empty[2];
};

// Whether rows of a small operand can be read four elements at a time.
inline bool lies_in_fours(const void* data, std::int64_t stride, Dtype dtype) {
  return reinterpret_cast<std::uintptr_t>(data) % (4 * dtype_size(dtype)) == 0 && stride % 4 == 0;
}

// Elements of a small operand on their way, as they lie in memory: to decode them is to wait for them.
struct RawElement {
  std::uint32_t bits;

  __device__ __forceinline__ void load(const void* data, std::int64_t index, Dtype dtype) {
    bits = dtype == Dtype::float32 ? static_cast<const std::uint32_t*>(data)[index]
                                   : static_cast<const std::uint16_t*>(data)[index];
  }
  __device__ __forceinline__ float decode(Dtype dtype) const {
    if (dtype == Dtype::float32) return __uint_as_float(bits);
    return dtype == Dtype::bfloat16 ? decode_bfloat16(bits) : decode_float16(bits);
  }
};

struct RawFour {
  std::uint32_t words[4];  // one element each, or two 16-bit elements in each of the first two

  // fours: lies_in_fours().
  __device__ __forceinline__ void load(const void* data, std::int64_t index, Dtype dtype, bool fours) {
    if (!fours) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        RawElement element;
        element.load(data, index + i, dtype);
        words[i] = element.bits;
      }
    } else if (dtype == Dtype::float32) {
      const uint4 four = *reinterpret_cast<const uint4*>(static_cast<const float*>(data) + index);
      words[0] = four.x, words[1] = four.y, words[2] = four.z, words[3] = four.w;
    } else {
      const uint2 four = *reinterpret_cast<const uint2*>(static_cast<const std::uint16_t*>(data) + index);
      words[0] = four.x, words[1] = four.y;
    }
  }
  __device__ __forceinline__ void decode(Dtype dtype, bool fours, float (&to)[4]) const {
    const bool pairs = fours && dtype != Dtype::float32;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const std::uint32_t paired = i % 2 == 0 ? words[i / 2] & 0xFFFFU : words[i / 2] >> 16;
      to[i] = RawElement{pairs ? paired : words[i]}.decode(dtype);
    }
  }
};

// A place in the ring of stages, in turn.
struct Turn {
  int stage = 0;
  unsigned parity = 0;

  __device__ __forceinline__ void next(int stages) {
    if (++stage < stages) return;
    stage = 0;
    parity ^= 1;
  }
};

// The computing warps' way to the tiles.
template <Dtype kState>
class Tiles {
 public:
  using Stored = typename StreamTile::template Stored<kState>;

  __device__ __forceinline__ Tiles(StreamBarriers& barriers, const char* memory, int stages)
      : barriers_(barriers), memory_(memory), stages_(stages) {}

  // The next tile, in every warp: where it lies, until release().
  __device__ __forceinline__ const void* wait() {
    barriers_.tile_full[turn_.stage].wait(turn_.parity);
    return memory_ + turn_.stage * kBytes;
  }
  __device__ __forceinline__ void release() {
    __syncwarp();
    if (threadIdx.x % 32 == 0) barriers_.tile_empty[turn_.stage].arrive();
    turn_.next(stages_);
  }
  // Takes it to registers.
  __device__ __forceinline__ void take(Stored& stored) {
    StreamTile(kTileColumns, kTileRows).template load<kState>(wait(), 0, stored);
    release();
  }
  __device__ __forceinline__ void take(StreamTile& tile) {
    Stored stored;
    take(stored);
    tile.template unpack<kState>(stored);
  }

  static constexpr int kBytes = kTileRows * kTileColumns * (kState == Dtype::float32 ? 4 : 2);

 private:
  StreamBarriers& barriers_;
  const char* memory_;
  int stages_;
  Turn turn_;
};

// The row of a unit that a lane finishes: one of its warp's eight in one of the four tiles.
__device__ __forceinline__ int own_tile() { return static_cast<int>(threadIdx.x) % 32 / StreamTile::kRows; }
__device__ __forceinline__ int own_row() {
  return own_tile() * kTileRows + static_cast<int>(threadIdx.x) / 32 * StreamTile::kRows +
         static_cast<int>(threadIdx.x) % StreamTile::kRows;
}

// Of a product of tile t as Tile::dot() leaves it, what belongs to the lane's own row.
__device__ __forceinline__ void keep_own(float sum, int t, float& own) {
  const int row = static_cast<int>(threadIdx.x) % StreamTile::kRows;
  const float given = __shfl_sync(0xFFFFFFFFU, sum, row * (StreamTile::kLanes / StreamTile::kRows));
  if (own_tile() == t) own = given;
}

// fold() of 32 values over a warp's lanes, for which the compiler does not see through that function's loops: lane i
// gets the sum of value i, the lanes added pairwise from far to near.
template <int kDistance = 16>
__device__ __forceinline__ float fold_all(float (&sum)[32]) {
  const bool upper = (threadIdx.x & kDistance) != 0;
#pragma unroll
  for (int r = 0; r < kDistance; ++r) {
    const float given = upper ? sum[r] : sum[r + kDistance];
    const float kept = upper ? sum[r + kDistance] : sum[r];
    sum[r] = kept + __shfl_xor_sync(0xFFFFFFFFU, given, kDistance);
  }
  if constexpr (kDistance > 1) return fold_all<kDistance / 2>(sum);
  return sum[0];
}

// A lane's share of Tile::dot() for one row: the products with its four columns of x. fold_all() of 32 such shares, for
// eight rows each of four products, gives a lane the whole of one.
__device__ __forceinline__ float dot_share(const float (&values)[4], const float (&x)[1][4]) {
  float sum = 0.0F;
#pragma unroll
  for (int i = 0; i < 4; ++i) sum = fmaf(values[i], x[0][i], sum);
  return sum;
}

// Calls use(t, r, values) for this lane's columns of its warp's row r of the unit's tile t. The next
// tile is in registers before the last is used.
template <Dtype kState, class Use>
__device__ __forceinline__ void for_rows(Tiles<kState>& tiles, const Use& use) {
  float values[4];
  typename Tiles<kState>::Stored stored[2];
  tiles.take(stored[0]);
#pragma unroll
  for (int t = 0; t < kUnitTiles; ++t) {
    if (t + 1 < kUnitTiles) tiles.take(stored[(t + 1) % 2]);
#pragma unroll
    for (int r = 0; r < StreamTile::kRows; ++r) {
      stored[t % 2][r][0].unpack(values);
      use(t, r, values);
    }
  }
}

// Tile t of a unit becomes what memory holds.
template <Dtype kState, class Arguments>
__device__ __forceinline__ void store_tile(const Arguments& a, const Place& place, const Unit& unit, int t,
                                           StreamTile& tile, ThreadCounts& counts) {
  typename StreamTile::template Stored<kState> stored;
  tile.template pack<kState>(a.state.storage.overflow == Overflow::saturate, a.state.counts != nullptr, counts, stored);
  const std::int64_t sequence = static_cast<std::int64_t>(place.slot) * a.cut.units_per_row * kUnitRows;
  tile.template store<kState>(a.state.data, (sequence + unit.first_row + t * kTileRows) * kTileColumns, stored);
}

// In step with the other computing warps.
__device__ __forceinline__ void sync_compute() { asm volatile("bar.sync 1, %0;" ::"n"(kComputeThreads) : "memory"); }

// The copying warp. A unit's first tile does not wait for its cursor.
template <class Job>
__device__ __forceinline__ void stream_in(const typename Job::Arguments& a, StreamBarriers& barriers,
                                          Place (&places)[2], char* memory) {
  constexpr int kTileBytes = Tiles<Job::kState>::kBytes;
  const auto lane = static_cast<int>(threadIdx.x % 32);
  const auto step = static_cast<int>(gridDim.x);
  const std::int64_t slot_rows = static_cast<std::int64_t>(a.cut.units_per_row) * kUnitRows;
  char* const operands = memory + a.cut.stages * kTileBytes;
  Turn tile, operand;
  const auto copy_tile = [&](const char* from) {
    barriers.tile_empty[tile.stage].wait(tile.parity ^ 1);
    barriers.tile_full[tile.stage].arrive_expecting(kTileBytes);
    copy_bulk(memory + tile.stage * kTileBytes, from, kTileBytes, barriers.tile_full[tile.stage]);
    tile.next(a.cut.stages);
  };
  for (int first = static_cast<int>(blockIdx.x); first < a.cut.units; first += 32 * step) {
    // A lane looks up a unit, 32 at once.
    Place mine{-1, -1};
    const int own = first + lane * step;
    if (own < a.cut.units) {
      const Unit unit(a.cut, own);
      mine.slot = a.block.slots == nullptr ? unit.row : a.block.slots[unit.row];
      if (mine.slot >= 0 && mine.slot < a.state.slots) mine.cursor = Job::cursor(a, mine.slot);
    }
    for (int i = 0; i < 32 && first + i * step < a.cut.units; ++i) {
      const Unit unit(a.cut, first + i * step);
      Place place;
      place.slot = __shfl_sync(0xFFFFFFFFU, mine.slot, i);
      const bool known = place.slot >= 0 && place.slot < a.state.slots;
      const char* from =
          static_cast<const char*>(a.state.data) + (place.slot * slot_rows + unit.first_row) * (kTileBytes / kTileRows);
      if (known && lane == 0) copy_tile(from);
      place.cursor = __shfl_sync(0xFFFFFFFFU, mine.cursor, i);
      if (lane == 0) {
        barriers.operands_empty[operand.stage].wait(operand.parity ^ 1);
        places[operand.stage] = place;
        Barrier& full = barriers.operands_full[operand.stage];
        if (place.cursor < 0) {
          full.arrive();
        } else {
          full.arrive_expecting(Job::operand_bytes(a, place.cursor));
          Job::copy_operands(a, unit, place, operands + operand.stage * a.cut.operand_bytes, full);
        }
        operand.next(2);
        for (int t = 1; known && t < kUnitTiles; ++t) copy_tile(from + t * kTileBytes);
      }
      __syncwarp();
    }
  }
}

// y of a unit whose row is padded or has a slot or cursor out of range.
template <class Arguments>
__device__ __forceinline__ void fill_unit(const Arguments& a, const Unit& unit, float value) {
  store_element(a.out.y, unit.row * a.out.y_stride + unit.first_row + static_cast<int>(threadIdx.x), value,
                a.out.dtype);
}

// The computing warps.
template <class Job>
__device__ __forceinline__ void compute(const typename Job::Arguments& a, StreamBarriers& barriers,
                                        const Place (&places)[2], typename Job::Shared& shared, char* memory) {
  Tiles<Job::kState> tiles(barriers, memory, a.cut.stages);
  const char* const operands = memory + a.cut.stages * Tiles<Job::kState>::kBytes;
  const auto step = static_cast<int>(gridDim.x);
  Turn operand;
  int parity = 0;  // of the units computed so far
  ThreadCounts counts;
  typename Job::Token token;
  int u = static_cast<int>(blockIdx.x);
  if (u < a.cut.units) token.load(a, Unit(a.cut, u));
  for (; u < a.cut.units; u += step) {
    const auto next = [&] {
      if (u + step < a.cut.units) token.load(a, Unit(a.cut, u + step));
    };
    barriers.operands_full[operand.stage].wait(operand.parity);
    const Unit unit(a.cut, u);
    const Place place = places[operand.stage];
    if (place.cursor >= 0) {
      Job::run(a, unit, place, token, next, operands + operand.stage * a.cut.operand_bytes, tiles, shared, parity,
               counts);
      parity ^= 1;
    } else {
      const bool known = place.slot >= 0 && place.slot < a.state.slots;
      for (int t = 0; known && t < kUnitTiles; ++t) tiles.wait(), tiles.release();
      fill_unit(a, unit, place.slot < 0 ? 0.0F : nanf(""));
      next();
    }
    __syncwarp();
    if (threadIdx.x % 32 == 0) barriers.operands_empty[operand.stage].arrive();
    operand.next(2);
  }
  if (a.state.counts != nullptr) add_counts(counts, a.state.counts);
}

template <class Job>
__global__ void __launch_bounds__(kStreamThreads, kStreamBlocks<Job::kState>)
    stream_kernel(const __grid_constant__ typename Job::Arguments a) {
  extern __shared__ __align__(128) char stream_memory[];
  __shared__ StreamBarriers barriers;
  __shared__ Place places[2];
  __shared__ __align__(16) typename Job::Shared shared;
  if (threadIdx.x == 0) {
    for (int i = 0; i < a.cut.stages; ++i) {
      barriers.tile_full[i].init(1);
      barriers.tile_empty[i].init(kComputeWarps);
    }
    for (int i = 0; i < 2; ++i) {
      barriers.operands_full[i].init(1);
      barriers.operands_empty[i].init(kComputeWarps);
    }
    fence_barriers();
  }
  __syncthreads();
  wait_for_earlier_launches();
  let_later_launches_begin();
  if (threadIdx.x >= kComputeThreads) {
    stream_in<Job>(a, barriers, places, stream_memory);
  } else {
    compute<Job>(a, barriers, places, shared, stream_memory);
  }
}

// Launches `kernel` so that it may overlap with the launch before it; it must call wait_for_earlier_launches().
template <class Arguments>
void launch_overlapped(void (*kernel)(Arguments), dim3 blocks, unsigned threads, std::size_t shared,
                       cudaStream_t stream, const Arguments& arguments) {
  cudaLaunchAttribute overlap{};
  overlap.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  overlap.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = blocks;
  config.blockDim = dim3(threads);
  config.dynamicSmemBytes = shared;
  config.stream = stream;
  config.attrs = &overlap;
  config.numAttrs = 1;
  expect_success(cudaLaunchKernelEx(&config, kernel, arguments), "launching a kernel");
}

// Launches Job's stream with as many stages as fit, on a Hopper GPU; false where there is no room for it.
// arguments.cut has all but the stages.
template <class Job>
bool launch_stream(cudaStream_t stream, typename Job::Arguments arguments) {
  constexpr int kTileBytes = Tiles<Job::kState>::kBytes;
  constexpr int kReserved = 1024;  // of each block's shared memory, by the system
  const auto kernel = stream_kernel<Job>;
  const cudaFuncAttributes attributes = attributes_of(kernel);
  if (attributes.ptxVersion < 90) return false;  // compiled for older GPUs
  const int all = device_attribute(cudaDevAttrMaxSharedMemoryPerMultiprocessor);
  const int taken = kReserved + static_cast<int>(attributes.sharedSizeBytes) + 2 * arguments.cut.operand_bytes;
  const auto stages = [&](int blocks) { return std::min(kMaxStages, (all / blocks - taken) / kTileBytes); };
  constexpr int kBlocks = kStreamBlocks<Job::kState>;
  const int blocks = stages(kBlocks) >= 2 ? kBlocks : 1;
  arguments.cut.stages = stages(blocks);
  if (arguments.cut.stages < 2) return false;
  const auto shared = static_cast<std::size_t>(arguments.cut.stages * kTileBytes + 2 * arguments.cut.operand_bytes);
  allow_shared(kernel, shared);
  const int grid = std::min(arguments.cut.units, blocks * device_attribute(cudaDevAttrMultiProcessorCount));
  launch_overlapped(kernel, dim3(static_cast<unsigned>(grid)), kStreamThreads, shared, stream, arguments);
  return true;
}

}  // namespace replayeval::cuda
