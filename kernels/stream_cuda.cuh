// Single steps on Hopper: a few blocks stay on each multiprocessor and the whole batch's state streams through their
// shared memory, so that reads never pause, neither between heads nor for small operands. One warp copies state and
// ring ahead in bulk, one or two make each unit's small operands ready while the units before it are computed, eight
// compute.
//
// State tiles have kTileRows rows of kTileColumns columns and are read into the same Tile as everywhere, or multiplied
// as vector_products_cuda.cuh says, so the order of every sum is that of the other kernels. A unit of work is
// kUnitTiles tiles of one sequence, all of one group of heads. A family says what else its units need, as a Job:
//
//   Arguments            what its call got, among it block, state and out, and `cut`
//   kState               the state's dtype
//   Window               what is ready of a unit, in shared memory
//   FlushMemory          what the computing warps use beside it, in shared memory
//   cursor(a, slot)      the slot's ring position, -1 where it is out of range
//   copied_bytes(a, cursor), copy_ring(a, unit, place, to, barrier)
//                        what a unit's ring comes to, and the copies
//   prefetch_ring(a, unit, slot)
//                        asks for all of it to be in the cache
//   ColumnPart, RowPart  what the preparing warps do, each a part or one both: of the operands along the columns, which
//                        a group's heads share, and of those along the rows, with the scalars. As registers of a lane:
//     load(a, unit)      the token's operands
//     ready(a, window)   puts them in the window and returns, as Ready, what is needed of them below
//     prepare(a, unit, place, ready, ring, window)
//                        the rest of the part's window, once the ring is there
//   run(a, unit, place, ring, tiles, window, memory, counts)
//                        by the computing warps
//   kColumnWarps, kBlocks
//                        if it has these: how many warps share the ColumnPart, each by its column_warp(), one more
//                        having the RowPart; and its blocks on a multiprocessor
#pragma once

#include "kernels/bulk_cuda.cuh"
#include "kernels/launch_cuda.cuh"
#include "kernels/raw_operands_cuda.cuh"
#include "kernels/stream_units_cuda.cuh"

#include <algorithm>
#include <cstdint>

namespace replayeval::cuda {

inline constexpr int kComputeThreads = 256;
inline constexpr int kComputeWarps = kComputeThreads / 32;
inline constexpr int kCopyingWarp = kComputeWarps;
inline constexpr int kPreparingWarp = kComputeWarps + 1;  // the first of kPreparing
// One warp more takes registers from all. A 16-bit state's two blocks a multiprocessor miss them more than the time
// that a second preparing warp saves, but for so few units that a step is one wait after the other.
inline constexpr int kFewUnits = 64;
template <int kPreparing>
inline constexpr int kStreamThreads = kComputeThreads + 32 + 32 * kPreparing;
// Blocks on a multiprocessor: 16-bit states take twice the arithmetic for a byte.
template <Dtype kState>
inline constexpr int kStreamBlocks = kState == Dtype::float32 ? 1 : 2;
template <class Job>
consteval int stream_blocks() {
  if constexpr (requires { Job::kBlocks; }) return Job::kBlocks;
  return kStreamBlocks<Job::kState>;
}
inline constexpr int kMaxStages = 8;
// Units whose ring and window are in shared memory. When memory is busy a copy takes as long as a unit is computed: so
// rings are asked for one unit ahead of their windows, and those are made ready one unit ahead.
inline constexpr int kWindows = 3;
// Among those that share a ColumnPart.
__device__ __forceinline__ int column_warp() { return static_cast<int>(threadIdx.x) / 32 - kPreparingWarp; }
static_assert(StreamTile::kWarpRows * kComputeWarps == kTileRows);
static_assert(StreamTile::kRows * kUnitTiles == 32, "each lane finishes one row of one tile");

// Of a RowPart's warp the lanes share out a unit's heads, eight each.
inline constexpr int kHeadLanes = 8;
inline constexpr int kMaxUnitHeads = 32 / kHeadLanes;
static_assert(kMaxUnitHeads * kTileRows == kUnitRows);
__device__ __forceinline__ int lane_head() { return static_cast<int>(threadIdx.x) % 32 / kHeadLanes; }
__device__ __forceinline__ int head_lane() { return static_cast<int>(threadIdx.x) % kHeadLanes; }

// Where a unit's sequence stands; a cursor of -1: nothing to compute.
struct Place {
  int slot, cursor;
};

struct StreamBarriers {
  Barrier tile_full[kMaxStages], tile_empty[kMaxStages];
  Barrier ring_full[kWindows], window_ready[kWindows], window_free[kWindows];
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

// A tile of a unit, of which every computing warp has rows. The compiler finds that out only sometimes.
__device__ __forceinline__ StreamTile unit_tile() {
  StreamTile tile(kTileColumns, kTileRows);
  tile.active = true;
  return tile;
}

// The computing warps' way to the tiles.
template <Dtype kState>
class Tiles {
 public:
  using Stored = typename StreamTile::template Stored<kState>;

  __device__ __forceinline__ Tiles(StreamBarriers& barriers, const char* memory, int stages)
      : barriers_(barriers), memory_(memory), stages_(stages) {}

  // The next tile, in every warp: where it lies, until it is released.
  __device__ __forceinline__ const void* wait() {
    barriers_.tile_full[next_.stage].wait(next_.parity);
    const void* tile = memory_ + next_.stage * kBytes;
    next_.next(stages_);
    return tile;
  }
  // To registers.
  __device__ __forceinline__ void load(Stored& stored) { unit_tile().template load<kState>(wait(), 0, stored); }
  __device__ __forceinline__ void load(StreamTile& tile) {
    Stored stored;
    load(stored);
    tile.template unpack<kState>(stored);
  }
  // Hands back the first `count` tiles that are not yet. The fence keeps a load that is still under way from being
  // overtaken by the next copy, and waits for it: so this comes after the tile's values were used.
  __device__ __forceinline__ void release(int count = 1) {
    fence_before_copies();
    for (int i = 0; i < count; ++i) {
      barriers_.tile_empty[held_].arrive();
      if (++held_ == stages_) held_ = 0;
    }
  }

  static constexpr int kBytes = kTileRows * kTileColumns * (kState == Dtype::float32 ? 4 : 2);

 private:
  StreamBarriers& barriers_;
  const char* memory_;
  int stages_;
  Turn next_;
  int held_ = 0;  // the stage to hand back next
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

// fold() of tile_cuda.cuh for more values, of which the compiler does not see through that function's loops: lane i
// gets the sum of value i / (32 / kCount), the lanes added pairwise from far to near.
template <int kCount, int kDistance = 16>
__device__ __forceinline__ float fold_all(float* sum) {
  if constexpr (kCount > 1) {
    const bool upper = (threadIdx.x & kDistance) != 0;
#pragma unroll
    for (int r = 0; r < kCount / 2; ++r) {
      const float given = upper ? sum[r] : sum[r + kCount / 2];
      const float kept = upper ? sum[r + kCount / 2] : sum[r];
      sum[r] = kept + __shfl_xor_sync(0xFFFFFFFFU, given, kDistance);
    }
  } else {
    sum[0] = sum[0] + __shfl_xor_sync(0xFFFFFFFFU, sum[0], kDistance);
  }
  if constexpr (kDistance > 1) return fold_all<(kCount + 1) / 2, kDistance / 2>(sum);
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

// Calls use(t, r, values) for this lane's columns of its warp's row r of the unit's tile t. The next tile is
// in registers before the last is used.
template <Dtype kState, class Use>
__device__ __forceinline__ void for_rows(Tiles<kState>& tiles, const Use& use) {
  float values[4];
  typename Tiles<kState>::Stored stored[2];
  tiles.load(stored[0]);
#pragma unroll
  for (int t = 0; t < kUnitTiles; ++t) {
    if (t + 1 < kUnitTiles) tiles.load(stored[(t + 1) % 2]);
#pragma unroll
    for (int r = 0; r < StreamTile::kRows; ++r) {
      stored[t % 2][r][0].unpack(values);
      use(t, r, values);
    }
    tiles.release();
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

// Looks up where a block's units stand, 32 at a time, one a lane; n counts them.
template <class Job>
class Places {
 public:
  explicit __device__ __forceinline__ Places(const typename Job::Arguments& a) : a_(a) {}

  // Of the n-th unit, in every lane; n goes up one by one. The cursor is waited for only by cursor().
  __device__ __forceinline__ int slot(int n, const BlockUnits& units) {
    if (n % 32 == 0) look_up(units);
    return __shfl_sync(0xFFFFFFFFU, mine_.slot, n % 32);
  }
  __device__ __forceinline__ int cursor(int n) const { return __shfl_sync(0xFFFFFFFFU, mine_.cursor, n % 32); }

 private:
  __device__ __forceinline__ void look_up(const BlockUnits& units) {
    mine_ = {-1, -1};
    const std::int64_t own = units.unit_after(static_cast<int>(threadIdx.x) % 32);
    if (own >= a_.cut.units) return;
    const int row = a_.cut.per_row.divide(static_cast<int>(own));
    mine_.slot = a_.block.slots == nullptr ? row : a_.block.slots[row];
    if (mine_.slot >= 0 && mine_.slot < a_.state.slots) mine_.cursor = Job::cursor(a_, mine_.slot);
  }

  const typename Job::Arguments& a_;
  Place mine_;
};

// The copying warp's doings; copies are made by its first lane.
template <class Job>
class Copier {
 public:
  __device__ __forceinline__ Copier(const typename Job::Arguments& a, StreamBarriers& barriers, Place* places,
                                    char* tiles, char* rings)
      : a_(a), barriers_(barriers), places_(places), tiles_(tiles), rings_(rings) {}

  // Tiles `first` up to `end` of a unit.
  __device__ __forceinline__ void copy_tiles(int unit, int slot, int first, int end) {
    if (slot < 0 || slot >= a_.state.slots || threadIdx.x % 32 != 0) return;
    const std::int64_t row =
        static_cast<std::int64_t>(slot) * a_.cut.units_per_row * kUnitRows + Unit(a_.cut, unit).first_row;
    const char* from = static_cast<const char*>(a_.state.data) + row * (kTileBytes / kTileRows);
    for (int t = first; t < end; ++t) {
      Barrier& full = barriers_.tile_full[tile_.stage];
      barriers_.tile_empty[tile_.stage].wait(tile_.parity ^ 1);
      full.arrive_expecting(kTileBytes);
      copy_bulk(tiles_ + tile_.stage * kTileBytes, from + t * kTileBytes, kTileBytes, full);
      tile_.next(a_.cut.stages);
    }
  }
  __device__ __forceinline__ void copy_ring(int unit, const Place& place) {
    if (threadIdx.x % 32 != 0) return;
    Barrier& full = barriers_.ring_full[ring_.stage];
    barriers_.window_free[ring_.stage].wait(ring_.parity ^ 1);
    places_[ring_.stage] = place;
    if (place.cursor < 0) {
      full.arrive();
    } else {
      full.arrive_expecting(Job::copied_bytes(a_, place.cursor));
      Job::copy_ring(a_, Unit(a_.cut, unit), place, rings_ + ring_.stage * a_.cut.ring_bytes, full);
    }
    ring_.next(kWindows);
  }

 private:
  static constexpr int kTileBytes = Tiles<Job::kState>::kBytes;

  const typename Job::Arguments& a_;
  StreamBarriers& barriers_;
  Place* places_;
  char* tiles_;
  char* rings_;
  Turn tile_, ring_;
};

// The copying warp. The first tile does not wait for its cursor.
template <class Job>
__device__ __forceinline__ void stream_in(const typename Job::Arguments& a, Copier<Job> copier) {
  Places<Job> places(a);
  BlockUnits units(a.cut);
  Place place{places.slot(0, units), -1};
  for (int n = 0; units.there(); ++n) {
    const int u = units.unit();
    units.next();
    copier.copy_tiles(u, place.slot, 0, 1);
    if (n == 0) place.cursor = places.cursor(0);
    if (n == 0) copier.copy_ring(u, place);
    __syncwarp();
    Place next{-1, -1};
    if (units.there()) {
      next.slot = places.slot(n + 1, units);
      next.cursor = places.cursor(n + 1);
      copier.copy_ring(units.unit(), next);
    }
    copier.copy_tiles(u, place.slot, 1, kUnitTiles);
    __syncwarp();
    place = next;
  }
}

// y of a unit whose row is padded or has a slot or cursor out of range.
template <class Arguments>
__device__ __forceinline__ void fill_unit(const Arguments& a, const Unit& unit, float value) {
  store_element(a.out.y, unit.row * a.out.y_stride + unit.first_row + static_cast<int>(threadIdx.x), value,
                a.out.dtype);
}

// A preparing warp.
template <class Job, class Part>
__device__ __forceinline__ void prepare_windows(const typename Job::Arguments& a, StreamBarriers& barriers,
                                                const Place* places, typename Job::Window* windows, char* rings) {
  Turn turn;
  Part operands;
  BlockUnits units(a.cut);
  if (units.there()) operands.load(a, Unit(a.cut, units.unit()));
  while (units.there()) {
    const int u = units.unit();
    units.next();
    const Part current = operands;
    if (units.there()) operands.load(a, Unit(a.cut, units.unit()));
    typename Job::Window& window = windows[turn.stage];
    barriers.window_free[turn.stage].wait(turn.parity ^ 1);
    const typename Part::Ready ready = current.ready(a, window);
    barriers.ring_full[turn.stage].wait(turn.parity);
    const Place place = places[turn.stage];
    if (place.cursor >= 0) {
      Part::prepare(a, Unit(a.cut, u), place, ready, rings + turn.stage * a.cut.ring_bytes, window);
    }
    barriers.window_ready[turn.stage].arrive();
    turn.next(kWindows);
  }
}

// Both parts by one warp.
template <class Job>
class BothParts {
 public:
  struct Ready {
    typename Job::RowPart::Ready rows;
    typename Job::ColumnPart::Ready columns;
  };
  __device__ __forceinline__ void load(const typename Job::Arguments& a, const Unit& unit) {
    columns_.load(a, unit);
    rows_.load(a, unit);
  }
  __device__ __forceinline__ Ready ready(const typename Job::Arguments& a, typename Job::Window& window) const {
    return {rows_.ready(a, window), columns_.ready(a, window)};
  }
  __device__ static __forceinline__ void prepare(const typename Job::Arguments& a, const Unit& unit, const Place& place,
                                                 const Ready& ready, char* ring, typename Job::Window& window) {
    Job::RowPart::prepare(a, unit, place, ready.rows, ring, window);
    Job::ColumnPart::prepare(a, unit, place, ready.columns, ring, window);
  }

 private:
  typename Job::ColumnPart columns_;
  typename Job::RowPart rows_;
};

// The computing warps.
template <class Job>
__device__ __forceinline__ void compute(const typename Job::Arguments& a, StreamBarriers& barriers, const Place* places,
                                        const typename Job::Window* windows, typename Job::FlushMemory& memory,
                                        const char* tile_memory, const char* rings) {
  Tiles<Job::kState> tiles(barriers, tile_memory, a.cut.stages);
  Turn turn;
  ThreadCounts counts;
  for (BlockUnits units(a.cut); units.there(); units.next()) {
    barriers.ring_full[turn.stage].wait(turn.parity);  // what came in bulk is seen by those who waited for it
    barriers.window_ready[turn.stage].wait(turn.parity);
    const Unit unit(a.cut, units.unit());
    const Place place = places[turn.stage];
    if (place.cursor >= 0) {
      Job::run(a, unit, place, rings + turn.stage * a.cut.ring_bytes, tiles, windows[turn.stage], memory, counts);
    } else {
      const bool known = place.slot >= 0 && place.slot < a.state.slots;
      for (int t = 0; known && t < kUnitTiles; ++t) tiles.wait(), tiles.release();
      fill_unit(a, unit, place.slot < 0 ? 0.0F : nanf(""));
    }
    barriers.window_free[turn.stage].arrive();
    turn.next(kWindows);
  }
  if (a.state.counts != nullptr) add_counts(counts, a.state.counts);
}

// Has the block's first unit on its way to the cache while the launch before this one ends. The slot may change until
// then: so this is no more than a guess.
template <class Job>
__device__ __forceinline__ void prefetch_first_unit(const typename Job::Arguments& a) {
  const Unit unit(a.cut, static_cast<int>(blockIdx.x));
  const int slot = a.block.slots == nullptr ? unit.row : a.block.slots[unit.row];
  if (slot < 0 || slot >= a.state.slots) return;
  const auto lane = static_cast<int>(threadIdx.x) % 32;
  constexpr int kTileBytes = Tiles<Job::kState>::kBytes;
  const std::int64_t row = static_cast<std::int64_t>(slot) * a.cut.units_per_row * kUnitRows + unit.first_row;
  const char* from = static_cast<const char*>(a.state.data) + row * (kTileBytes / kTileRows);
  if (lane < kUnitTiles) prefetch_bulk(from + lane * kTileBytes, kTileBytes);
  if (lane == kUnitTiles) Job::prefetch_ring(a, unit, slot);
}

template <class Job, int kPreparing>
__global__ void __launch_bounds__(kStreamThreads<kPreparing>, stream_blocks<Job>())
    stream_kernel(const __grid_constant__ typename Job::Arguments a) {
  extern __shared__ __align__(128) char stream_memory[];
  __shared__ StreamBarriers barriers;
  __shared__ Place places[kWindows];
  __shared__ __align__(16) typename Job::Window windows[kWindows];
  __shared__ __align__(16) typename Job::FlushMemory memory;
  char* const rings = stream_memory + a.cut.stages * Tiles<Job::kState>::kBytes;
  if (threadIdx.x == 0) {
    for (int i = 0; i < a.cut.stages; ++i) {
      barriers.tile_full[i].init(1);
      barriers.tile_empty[i].init(kComputeThreads);
    }
    for (int i = 0; i < kWindows; ++i) {
      barriers.ring_full[i].init(1);
      barriers.window_ready[i].init(32 * kPreparing);
      barriers.window_free[i].init(kComputeThreads);
    }
    fence_barriers();
  }
  __syncthreads();
  const auto warp = static_cast<int>(threadIdx.x) / 32;
  if (warp == kCopyingWarp) prefetch_first_unit<Job>(a);
  wait_for_earlier_launches();
  let_later_launches_begin();
  if (warp < kComputeWarps) {
    compute<Job>(a, barriers, places, windows, memory, stream_memory, rings);
  } else if (warp == kCopyingWarp) {
    stream_in<Job>(a, Copier<Job>(a, barriers, places, stream_memory, rings));
  } else if constexpr (kPreparing == 1) {
    prepare_windows<Job, BothParts<Job>>(a, barriers, places, windows, rings);
  } else if (kPreparing == 2 ? warp == kPreparingWarp : warp + 1 < kPreparingWarp + kPreparing) {
    prepare_windows<Job, typename Job::ColumnPart>(a, barriers, places, windows, rings);
  } else {
    prepare_windows<Job, typename Job::RowPart>(a, barriers, places, windows, rings);
  }
}

// Launches Job's stream, on a Hopper GPU; false where there is no room for it. arguments.cut has what the batch says.
template <class Job, int kPreparing>
bool launch_stream(cudaStream_t stream, typename Job::Arguments arguments) {
  constexpr int kTileBytes = Tiles<Job::kState>::kBytes;
  constexpr int kReserved = 1024;  // of each block's shared memory, by the system
  const auto kernel = stream_kernel<Job, kPreparing>;
  const cudaFuncAttributes attributes = attributes_of(kernel);
  if (!is_for_hopper(attributes)) return false;
  StreamCut& cut = arguments.cut;
  const int rings = kWindows * cut.ring_bytes;
  const int all = device_attribute(cudaDevAttrMaxSharedMemoryPerMultiprocessor);
  const auto stages = [&](int blocks) {
    const int room = all / blocks - kReserved - static_cast<int>(attributes.sharedSizeBytes) - rings;
    return std::min(kMaxStages, room / kTileBytes);
  };
  constexpr int kBlocks = stream_blocks<Job>();
  const int blocks = stages(kBlocks) >= 3 ? kBlocks : 1;
  cut.stages = stages(blocks);
  if (cut.stages < 2) return false;
  const auto shared = static_cast<std::size_t>(cut.stages * kTileBytes + rings);
  allow_shared(kernel, shared);
  const int grid = std::min(cut.units, blocks * device_attribute(cudaDevAttrMultiProcessorCount));
  cut.turn = turn_of(cut, grid);
  launch(kernel, dim3(static_cast<unsigned>(grid)), kStreamThreads<kPreparing>, shared, stream, arguments);
  return true;
}

template <class Job>
bool launch_stream(cudaStream_t stream, const typename Job::Arguments& arguments) {
  if constexpr (requires { Job::kColumnWarps; }) {
    return launch_stream<Job, Job::kColumnWarps + 1>(stream, arguments);
  } else {
    if constexpr (Job::kState != Dtype::float32) {
      if (arguments.cut.units > kFewUnits) return launch_stream<Job, 1>(stream, arguments);
    }
    return launch_stream<Job, 2>(stream, arguments);
  }
}

// What a job that has no ring says of it.
template <class Arguments>
struct WithoutRing {
  __device__ static __forceinline__ int cursor(const Arguments& /*a*/, int /*slot*/) { return 0; }
  __device__ static __forceinline__ unsigned copied_bytes(const Arguments& /*a*/, int /*cursor*/) { return 0; }
  __device__ static __forceinline__ void copy_ring(const Arguments& /*a*/, const Unit& /*unit*/, const Place& /*place*/,
                                                   char* /*to*/, Barrier& /*barrier*/) {}

  __device__ static __forceinline__ void prefetch_ring(const Arguments& /*a*/, const Unit& /*unit*/, int /*slot*/) {}
};

// A part whose window is whole before a ring is there.
template <class Operands>
struct PartWithoutRing : Operands {
  struct Ready {};
  template <class Arguments, class Window>
  __device__ static __forceinline__ void prepare(const Arguments& /*a*/, const Unit& /*unit*/, const Place& /*place*/,
                                                 const Ready& /*ready*/, const char* /*memory*/, Window& /*window*/) {}
};

}  // namespace replayeval::cuda
