// One output_only step of a small batch, flushes included (few_cuda.cuh). Four warps have rows of the state; two
// helpers make ready what the ring's entries weigh, and their B · C. Between flushes a block comes together only once.
// The bits are those of replay_block_cuda.cuh.
#include "kernels/few_cuda.cuh"
#include "kernels/mamba2/launch_cuda.cuh"
#include "kernels/mamba2/replay_arguments_cuda.cuh"
#include "kernels/mamba2/ring_cuda.cuh"
#include "kernels/mamba2/scalars_cuda.cuh"
#include "kernels/mamba2/stream_backends_cuda.h"
#include "kernels/mamba2/stream_cuda.cuh"
#include "kernels/stream_ring_cuda.cuh"

namespace replayeval::mamba2::cuda {
namespace {

struct FewArguments : ReplayArguments {};

enum class Role : int { times = kFewWarps, dots };  // of the helpers
constexpr std::int64_t kMostRows = 32768;
constexpr int kThreads = 32 * (kFewWarps + kFewHelpers);
template <Dtype kState>
constexpr int kStateBytes = kState == Dtype::float32 ? 4 : 2;

struct FewShared {
  FewFlushMemory flush;
  float weight[kFewEntries], dots[kFewEntries];  // of the entries; entry `cursor` is the token
  float scale;
};

__device__ __forceinline__ bool has_role(Role role) { return warp_index() == static_cast<int>(role); }
__device__ __forceinline__ bool has_rows() { return warp_index() < kFewWarps; }

__device__ __forceinline__ FewRing ring_of(const FewArguments& a, const BlockHead& h) {
  const RingOffsets at(a.shape, static_cast<int>(a.form.buffer_len), h);
  return {a.ring.B,
          a.ring.x,
          a.ring.dt,
          at.group,
          at.head,
          static_cast<int>(a.form.buffer_len),
          static_cast<int>(a.shape.head_dim)};
}

// Where a block's operands lie: in the caches of its slot, and of its token.
struct FewPlaces {
  FewRing ring;
  const std::int32_t* cursor;
  const char* state;  // the block's rows
  const char* C;      // the lane's columns
  const char* x;      // the block's rows
  char* y;

  __device__ __forceinline__ FewPlaces(const FewArguments& a, const BlockHead& h, int state_bytes)
      : ring(ring_of(a, h)), cursor(a.ring.cursor + h.slot) {
    state = static_cast<const char*>(a.state.data) + h.state_offset * state_bytes;
    const std::int64_t row = h.row;
    C = element_at(a.in.C, row * a.in.C_stride + h.group * FewTile::kMaxStateSize + FewTile::column_of(0), a.in.dtype);
    x = element_at(a.in.x, h.x_offset(a.shape, row, a.in.x_stride), a.in.dtype);
    y = const_cast<char*>(element_at(a.out.y, h.x_offset(a.shape, row, a.out.y_stride), a.out.dtype));
  }
  __device__ __forceinline__ void keep() {
    cuda::keep(ring);
    cuda::keep(cursor);
    cuda::keep(state);
    cuda::keep(C);
    cuda::keep(x);
    cuda::keep(y);
  }
};

__device__ __forceinline__ void load_B(const FewArguments& a, const BlockHead& h, RawFour& raw) {
  raw.load(a.in.B, h.row * a.in.B_stride + h.group * FewTile::kMaxStateSize + FewTile::column_of(0), a.in.dtype, true);
}

// The time steps' warp, an entry a lane: what entries weigh, as ring_weights() of scalars_cuda.cuh, the token being
// entry `cursor`.
struct TimeOperands {
  RawElement raw;
  float A_log, dt_bias, ring;

  __device__ __forceinline__ void load(const FewArguments& a, const BlockHead& h, const FewPlaces& at) {
    raw.load(a.in.dt, h.row * a.in.dt_stride + h.head, a.in.dtype);
    A_log = load_now(a.parameters.A_log + h.head);
    dt_bias = load_now(a.parameters.dt_bias + h.head);
    ring = load_now(at.ring.scalars + min(lane_index(), at.ring.length - 1));
  }
  // Returns the token's time step.
  __device__ __forceinline__ float prepare(const FewArguments& a, int cursor, FewShared& shared) const {
    const float own = time_step(raw.decode(a.in.dtype), dt_bias, a.parameters.dt_min, a.parameters.dt_max);
    const float rate = decay_rate(A_log);
    const float mine = lane_index() == cursor ? own : ring;
    float after;
    const float all = sum_after(mine, cursor, after);
    const float weight = mine * expf(rate * after);
    if (lane_index() <= cursor) shared.weight[lane_index()] = lane_index() == cursor ? own : weight;
    shared.scale = expf(rate * all);  // by every lane, the same
    return own;
  }
};

// The warp that has the ring's B: their products with C, the token's with them.
struct DotOperands {
  RawFour raw_B, raw_C;
  Packed4<Dtype::bfloat16> entries[kFewEntries];

  __device__ __forceinline__ void load(const FewArguments& a, const BlockHead& h, const FewPlaces& at) {
    raw_C.load(at.C, 0, a.in.dtype, true);
    load_B(a, h, raw_B);
#pragma unroll
    for (int j = 0; j < kFewEntries; ++j) {
      entries[j] = {};
      if (j < at.ring.length) load_now(at.ring.columns + j * kRowBytes, entries[j]);
    }
  }
  // B: the token's.
  __device__ __forceinline__ void prepare(const FewArguments& a, int cursor, float (&B)[4], FewShared& shared) const {
    float C[1][4];
    raw_C.decode(a.in.dtype, true, C[0]);
    raw_B.decode(a.in.dtype, true, B);
    float shares[kFewEntries];
#pragma unroll
    for (int j = 0; j < kFewEntries; ++j) {
      float values[4];
      entries[j].unpack(values);
      shares[j] = dot_share(values, C);
    }
    const float own = dot_share(B, C);
#pragma unroll
    for (int j = 0; j < kFewEntries; ++j) shares[j] = j == cursor ? own : shares[j];
    const float dot = fold_all<kFewEntries>(shares);
    shared.dots[lane_index() / (32 / kFewEntries)] = dot;  // by two lanes, the same value
  }
};

// What a helper does before the block comes together; returns the cursor. Where that is out of range, nothing.
__device__ __forceinline__ int help(const FewArguments& a, const BlockHead& h, const FewPlaces& at, FewShared& shared) {
  int cursor;
  const auto L = static_cast<int>(a.form.buffer_len);
  const RingOffsets offsets(a.shape, L, h);
  if (has_role(Role::times)) {
    TimeOperands operands;
    operands.load(a, h, at);
    cursor = load_last(at.cursor);
    if (cursor < 0 || cursor >= L) return cursor;
    const float dt = operands.prepare(a, cursor, shared);
    if (cursor + 1 < L && h.tile == 0 && lane_index() == 0) a.ring.dt[offsets.head + cursor] = dt;
  } else {
    DotOperands operands;
    operands.load(a, h, at);
    cursor = load_last(at.cursor);
    if (cursor < 0 || cursor >= L) return cursor;
    float B[4];
    operands.prepare(a, cursor, B, shared);
    if (cursor + 1 == L || h.tile != 0 || !h.leads_group) return cursor;
    Packed4<Dtype::bfloat16> packed;
    packed.pack(B);
    packed.store(a.ring.B, (offsets.group + cursor) * FewTile::kMaxStateSize + FewTile::column_of(0));
  }
  return cursor;
}

// What a warp has on its way: its rows of the checkpoint, C, and of the lane's row the ring's x, the token's and D.
template <Dtype kState>
struct FewLoads {
  RawFour C;
  typename FewTile::template Stored<kState> state;
  RowEntries entries;
  RawElement x;
  float D;

  // row: the lane's, of the block's.
  __device__ __forceinline__ void load(const FewArguments& a, const BlockHead& h, const FewPlaces& at, int row) {
    C.load(at.C, 0, a.in.dtype, true);
    x.load(at.x, row, a.in.dtype);
    D = load_now(a.parameters.D + h.head);
    entries.load_now(at.ring, h.first_row + row);
    load_now<kState>(at.state, state);
  }
};

// Of the lane's row, between flushes: what y is made of.
struct FewRow {
  float from_C = 0.0F;  // S_0 C
  float entry[kFewEntries - 1] = {};
  float x = 0.0F;
  float D = 0.0F;

  template <Dtype kState>
  __device__ __forceinline__ void take(const FewArguments& a, const FewLoads<kState>& loads, FewTile& tile) {
    float C[1][4];
    loads.C.decode(a.in.dtype, true, C[0]);
    tile.template unpack<kState>(loads.state);
    from_C = tile.dot(C);
#pragma unroll
    for (int j = 0; j < kFewEntries - 1; ++j) entry[j] = loads.entries.at(j);
    x = loads.x.decode(a.in.dtype);
    D = loads.D;
  }
  // y, once the helpers are ready.
  __device__ __forceinline__ float finish(const FewShared& shared, int cursor) const {
    float y = shared.scale * from_C;
#pragma unroll
    for (int first = 0; first < kFewEntries; first += 4) {
      float weight[4];
      float dot[4];
      load4<Dtype::float32>(shared.weight, first, weight);
      load4<Dtype::float32>(shared.dots, first, dot);
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        if (first + i < kFewEntries - 1 && first + i < cursor) y = fmaf(weight[i] * dot[i], entry[first + i], y);
      }
    }
    y = fmaf(shared.weight[cursor] * shared.dots[cursor], x, y);
    return fmaf(D, x, y);
  }
};

// The token becomes the ring's entry `cursor`: its x, of the lane's row.
__device__ __forceinline__ void append_row(const FewArguments& a, const BlockHead& h, int cursor, int row, float x) {
  if (lane_index() % 4 != 0) return;
  const auto P = static_cast<int>(a.shape.head_dim);
  const RingOffsets at(a.shape, static_cast<int>(a.form.buffer_len), h);
  store_element(a.ring.x, (at.head + cursor) * P + h.first_row + row, x, Dtype::bfloat16);
}

// By a flush: y of the lane's row; S_w becomes the checkpoint. All is loaded once more, from the caches: what a flush
// keeps in registers for its own sake every step would have to.
template <Dtype kState>
__device__ __forceinline__ float flush_rows(const FewArguments& a, const BlockHead& h, int cursor, int row,
                                            FewShared& shared, FewTile& tile) {
  const FewPlaces at(a, h, kStateBytes<kState>);
  FewLoads<kState> loads;
  loads.load(a, h, at, row);
  RawFour raw_B;
  load_B(a, h, raw_B);
  tile.template unpack<kState>(loads.state);
  sum_few<kState>(at.ring, loads.entries, cursor, shared.scale, shared.weight, shared.flush, tile);
  const float x = loads.x.decode(a.in.dtype);
  float vector[1][4];
  raw_B.decode(a.in.dtype, true, vector[0]);
  float rows[FewTile::kRows];
  FewTile::spread(shared.weight[cursor] * x, rows);
  tile.add_outer(rows, vector);
  loads.C.decode(a.in.dtype, true, vector[0]);
  const float y = fmaf(loads.D, x, tile.dot(vector));
  store_few<kState>(a.state, h, tile);
  return y;
}

template <Dtype kState>
__global__ void __launch_bounds__(kThreads, kFewBlocks) few_kernel(const __grid_constant__ FewArguments a) {
  __shared__ __align__(16) FewShared shared;
  BlockHead h(a.shape, a.block, a.cut);
  FewPlaces at(a, h, kStateBytes<kState>);
  if (h.slot >= 0 && h.slot < a.state.slots) prefetch_few<kState>(a.state, h, at.ring);
  at.keep();
  touch_arguments(a);
  wait_for_earlier_launches();
  let_later_launches_begin();
  if (a.block.slots != nullptr) {
    h.read_slot(a.shape, a.block);
    at = FewPlaces(a, h, kStateBytes<kState>);
  }
  if (h.slot < 0 || h.slot >= a.state.slots) {
    return fill_y(a.shape, a.block, a.out, h, h.slot < 0 ? 0.0F : nanf(""));
  }
  const auto L = static_cast<int>(a.form.buffer_len);
  FewTile tile(FewTile::kMaxStateSize, kFewRows);
  tile.active = true;
  const int row = tile.block_row + RowShare::row();
  int cursor;
  FewRow own;
  if (has_rows()) {
    FewLoads<kState> loads;
    loads.load(a, h, at, row);
    cursor = load_last(at.cursor);
    if (cursor >= 0 && cursor < L) {
      own.take(a, loads, tile);
      if (cursor + 1 < L) append_row(a, h, cursor, row, own.x);
    }
  } else {
    cursor = help(a, h, at, shared);
  }
  if (cursor < 0 || cursor >= L) return fill_y(a.shape, a.block, a.out, h, nanf(""));
  __syncthreads();
  const bool flush = cursor + 1 == L;
  if (has_rows()) {
    const float y = flush ? flush_rows<kState>(a, h, cursor, row, shared, tile) : own.finish(shared, cursor);
    if (lane_index() % 4 == 0) store_element(at.y, row, y, a.out.dtype);
  } else if (flush) {
    lay_out_few<kState>(at.ring, cursor, shared.flush);
  }
}

}  // namespace

bool replay_few(cudaStream_t stream, const Shape& shape, const ReplayForm& form, const Block& block, const Inputs& in,
                const Parameters& parameters, const State& state, const Ring& ring, const Output& out) {
  if (block.tokens != 1 || form.route != Route::output_only || form.flush != Flush::summed || !reads_fours(in) ||
      !takes_few(head_shape(shape), block.batch, form.buffer_len, form.ring_dtype, kMostRows)) {
    return false;
  }
  const FewArguments arguments{{shape, form, block, in, parameters, state, ring, out, {}}};
  const auto kernel = state.storage.dtype == Dtype::float32    ? few_kernel<Dtype::float32>
                      : state.storage.dtype == Dtype::bfloat16 ? few_kernel<Dtype::bfloat16>
                                                               : few_kernel<Dtype::float16>;
  return launch_few(kernel, head_shape(shape), stream, arguments, kThreads / 32);
}

}  // namespace replayeval::mamba2::cuda
