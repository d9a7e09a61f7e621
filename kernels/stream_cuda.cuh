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
inline constexpr int kStreamBlocks = 2;  // on a multiprocessor, unless a ring leaves no room
inline constexpr int kMaxStages = 8;
static_assert(StreamTile::kWarpRows * kComputeWarps == kTileRows);
static_assert(StreamTile::kLanes / StreamTile::kRows == kUnitTiles, "each lane finishes one row of one tile");

// How a batch is cut into units.
struct StreamCut {
  int units_per_row = 0;
  int units = 0;
  int stages = 0;         // tiles in shared memory
  int operand_bytes = 0;  // of one unit, at most; a multiple of 16
};

struct Unit {
  int row;        // of the batch
  int first_row;  // of the sequence's rows of all heads, which the unit's kUnitRows follow

  __device__ __forceinline__ Unit(const StreamCut& cut, int unit)
      : row(unit / cut.units_per_row), first_row(unit % cut.units_per_row * kUnitRows) {}
};

// Where a unit's sequence stands; a cursor of -1: nothing to compute.
struct Place {
  int slot, cursor;
};

struct StreamBarriers {
  Barrier tile_full[kMaxStages], tile_empty[kMaxStages];
  Barrier operands_full[2], operands_empty[2];
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
  __device__ __forceinline__ Tiles(StreamBarriers& barriers, const char* memory, int stages)
      : barriers_(barriers), memory_(memory), stages_(stages) {}

  // The next tile, in every warp; its place in shared memory is free again afterwards.
  __device__ __forceinline__ void take(StreamTile& tile) {
    barriers_.tile_full[turn_.stage].wait(turn_.parity);
    typename StreamTile::template Stored<kState> stored;
    tile.template load<kState>(memory_ + turn_.stage * kBytes, 0, stored);
    tile.template unpack<kState>(stored);
    release();
  }
  __device__ __forceinline__ void skip() {
    barriers_.tile_full[turn_.stage].wait(turn_.parity);
    release();
  }

  static constexpr int kBytes = kTileRows * kTileColumns * (kState == Dtype::float32 ? 4 : 2);

 private:
  __device__ __forceinline__ void release() {
    __syncwarp();
    if (threadIdx.x % 32 == 0) barriers_.tile_empty[turn_.stage].arrive();
    turn_.next(stages_);
  }

  StreamBarriers& barriers_;
  const char* memory_;
  int stages_;
  Turn turn_;
};

// A lane finishes one row of one of a unit's tiles, the tile whose sums it keeps; row own_row() of its warp's.
__device__ __forceinline__ int own_tile() { return static_cast<int>(threadIdx.x) % kUnitTiles; }

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
      for (int t = 0; known && t < kUnitTiles; ++t) tiles.skip();
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
__global__ void __launch_bounds__(kStreamThreads, kStreamBlocks)
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

// Sequences enough that every block gets a unit; fewer are cut finer by the other kernels.
inline bool is_large(std::int64_t units) {
  return units >= kStreamBlocks * device_attribute(cudaDevAttrMultiProcessorCount) && units < (1 << 30);
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
  const int blocks = stages(kStreamBlocks) >= 2 ? kStreamBlocks : 1;
  arguments.cut.stages = stages(blocks);
  if (arguments.cut.stages < 2) return false;
  const auto shared = static_cast<std::size_t>(arguments.cut.stages * kTileBytes + 2 * arguments.cut.operand_bytes);
  allow_shared(kernel, shared);
  const int grid = std::min(arguments.cut.units, blocks * device_attribute(cudaDevAttrMultiProcessorCount));
  launch_overlapped(kernel, dim3(static_cast<unsigned>(grid)), kStreamThreads, shared, stream, arguments);
  return true;
}

}  // namespace replayeval::cuda
