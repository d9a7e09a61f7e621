// One output_only step of a small batch, flushes included (few_cuda.cuh). Every warp has C in registers, so a block
// comes together only once: what the ring's entries weigh, by one warp, and their B · C, four a warp. The bits are
// those of replay_block_cuda.cuh.
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

struct FewArguments : ReplayArguments {
  bool fours;  // reads_fours()
};

constexpr int kWarpEntries = kFewEntries / kFewWarps;
enum class Role : int { token, times };  // the warps that also have the token's B, and the time steps

struct FewShared {
  FewFlushMemory flush;
  float weight[kFewEntries], dots[kFewEntries];  // of the entries; entry `cursor` is the token
  float scale, dt;
};

__device__ __forceinline__ bool has_role(Role role) { return warp_index() == static_cast<int>(role); }

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

// The time steps' warp: an entry a lane.
struct TimeOperands {
  RawElement raw;
  float A_log, dt_bias, ring;

  __device__ __forceinline__ void load(const FewArguments& a, const BlockHead& h, const FewRing& from) {
    ring = lane_index() < from.length ? from.scalars[lane_index()] : 0.0F;
    raw.load(a.in.dt, h.row * a.in.dt_stride + h.head, a.in.dtype);
    A_log = a.parameters.A_log[h.head];
    dt_bias = a.parameters.dt_bias[h.head];
  }
  // As ring_weights() of scalars_cuda.cuh, the token being entry `cursor`.
  __device__ __forceinline__ void prepare(const FewArguments& a, int cursor, FewShared& shared) const {
    const float own = time_step(raw.decode(a.in.dtype), dt_bias, a.parameters.dt_min, a.parameters.dt_max);
    const float rate = decay_rate(A_log);
    const float mine = lane_index() == cursor ? own : ring;
    float after;
    const float all = sum_after(mine, cursor, after);
    if (lane_index() <= cursor) shared.weight[lane_index()] = lane_index() == cursor ? own : mine * expf(rate * after);
    shared.scale = expf(rate * all);  // by every lane, the same
    shared.dt = own;
  }
};

// What every warp has on its way: its rows of the checkpoint, C, its share of the ring's B, and of the lane's row the
// ring's x, the token's and D.
template <Dtype kState>
struct FewLoads {
  typename FewTile::template Stored<kState> state;
  RawFour C;
  Packed4<Dtype::bfloat16> B[kWarpEntries];
  RowEntries entries;
  RawElement x;
  float D;

  __device__ __forceinline__ void load(const FewArguments& a, const BlockHead& h, const FewRing& ring,
                                       const FewTile& tile, int row) {
    tile.template load<kState>(a.state.data, h.state_offset, state);
    C.load(a.in.C, h.row * a.in.C_stride + h.group * FewTile::kMaxStateSize + FewTile::column_of(0), a.in.dtype,
           a.fours);
#pragma unroll
    for (int j = 0; j < kWarpEntries; ++j) {
      B[j].load(ring.entry(kWarpEntries * warp_index() + j), FewTile::column_of(0));
    }
    entries.load(ring, h.first_row + row);
    x.load(a.in.x, h.x_offset(a.shape, h.row, a.in.x_stride) + row, a.in.dtype);
    D = a.parameters.D[h.head];
  }
};

// B_j · C of the warp's entries.
__device__ __forceinline__ void multiply_own_entries(const Packed4<Dtype::bfloat16> (&B)[kWarpEntries],
                                                     const float (&C)[1][4], int cursor, FewShared& shared) {
  float shares[kWarpEntries];
#pragma unroll
  for (int j = 0; j < kWarpEntries; ++j) {
    float values[4];
    B[j].unpack(values);
    shares[j] = dot_share(values, C);
  }
  const float dot = fold_all<kWarpEntries>(shares);
  constexpr int kLanes = 32 / kWarpEntries;
  const int entry = kWarpEntries * warp_index() + lane_index() / kLanes;
  if (lane_index() % kLanes == 0 && entry < cursor) shared.dots[entry] = dot;
}

// Between flushes: y of the lane's row, but for D x, from S_0 C.
__device__ __forceinline__ float finish_row(const FewShared& shared, const RowEntries& entries, float x, int cursor,
                                            float sum) {
  float y = shared.scale * sum;
#pragma unroll
  for (int j = 0; j < kFewEntries - 1; ++j) {
    const float entry = entries.at(j);
    const float by = shared.weight[j] * shared.dots[j];
    if (j < cursor) y = fmaf(by, entry, y);
  }
  return fmaf(shared.weight[cursor] * shared.dots[cursor], x, y);
}

// The token becomes the ring's entry `cursor`.
__device__ __forceinline__ void append_few(const FewArguments& a, const BlockHead& h, int cursor, int row, float x,
                                           const float (&B)[1][4], const FewShared& shared) {
  const RingOffsets at(a.shape, static_cast<int>(a.form.buffer_len), h);
  if (lane_index() % 4 == 0) {
    store_element(a.ring.x, (at.head + cursor) * static_cast<int>(a.shape.head_dim) + h.first_row + row, x,
                  Dtype::bfloat16);
  }
  if (h.tile != 0 || !has_role(Role::token)) return;
  if (lane_index() == 0) a.ring.dt[at.head + cursor] = shared.dt;
  if (!h.leads_group) return;
  Packed4<Dtype::bfloat16> packed;
  packed.pack(B[0]);
  packed.store(a.ring.B, (at.group + cursor) * FewTile::kMaxStateSize + FewTile::column_of(0));
}

template <Dtype kState>
__global__ void __launch_bounds__(32 * kFewWarps, 4) few_kernel(const __grid_constant__ FewArguments a) {
  __shared__ __align__(16) FewShared shared;
  if (const BlockHead guess(a.shape, a.block, a.cut); guess.slot >= 0 && guess.slot < a.state.slots) {
    prefetch_few<kState>(a.state, guess, ring_of(a, guess));
  }
  wait_for_earlier_launches();
  let_later_launches_begin();
  const BlockHead h(a.shape, a.block, a.cut);
  if (h.slot < 0 || h.slot >= a.state.slots) {
    return fill_y(a.shape, a.block, a.out, h, h.slot < 0 ? 0.0F : nanf(""));
  }
  const auto L = static_cast<int>(a.form.buffer_len);
  const FewRing ring = ring_of(a, h);
  FewTile tile(FewTile::kMaxStateSize, h.rows);
  const int row = tile.block_row + RowShare::row();
  const int cursor = a.ring.cursor[h.slot];
  TimeOperands times;
  if (has_role(Role::times)) times.load(a, h, ring);
  RawFour raw_B;
  raw_B.load(a.in.B, h.row * a.in.B_stride + h.group * FewTile::kMaxStateSize + FewTile::column_of(0), a.in.dtype,
             a.fours);
  FewLoads<kState> loads;
  loads.load(a, h, ring, tile, row);
  if (cursor < 0 || cursor >= L) return fill_y(a.shape, a.block, a.out, h, nanf(""));
  if (has_role(Role::times)) times.prepare(a, cursor, shared);
  float C[1][4];
  float B[1][4];
  loads.C.decode(a.in.dtype, a.fours, C[0]);
  raw_B.decode(a.in.dtype, a.fours, B[0]);
  const bool flush = cursor + 1 == L;
  if (!flush) {
    multiply_own_entries(loads.B, C, cursor, shared);
    if (has_role(Role::token)) shared.dots[cursor] = row_dot(B[0], C[0]);  // by every lane, the same value
  }
  tile.template unpack<kState>(loads.state);
  float y = 0.0F;
  if (!flush) y = tile.dot(C);
  __syncthreads();
  const float x = loads.x.decode(a.in.dtype);
  if (flush) {
    sum_few<kState>(ring, loads.entries, cursor, shared.scale, shared.weight, shared.flush, tile);
    float rows[FewTile::kRows];
    FewTile::spread(shared.weight[cursor] * x, rows);
    tile.add_outer(rows, B);
    y = tile.dot(C);
    store_few<kState>(a.state, h, tile);
  } else {
    y = finish_row(shared, loads.entries, x, cursor, y);
    append_few(a, h, cursor, row, x, B, shared);
  }
  if (lane_index() % 4 == 0) {
    store_element(a.out.y, h.x_offset(a.shape, h.row, a.out.y_stride) + row, fmaf(loads.D, x, y), a.out.dtype);
  }
}

}  // namespace

bool replay_few(cudaStream_t stream, const Shape& shape, const ReplayForm& form, const Block& block, const Inputs& in,
                const Parameters& parameters, const State& state, const Ring& ring, const Output& out) {
  if (block.tokens != 1 || form.route != Route::output_only || form.flush != Flush::summed ||
      !takes_few(head_shape(shape), block.batch, form.buffer_len, form.ring_dtype)) {
    return false;
  }
  const FewArguments arguments{{shape, form, block, in, parameters, state, ring, out, {}}, reads_fours(in)};
  const auto kernel = state.storage.dtype == Dtype::float32    ? few_kernel<Dtype::float32>
                      : state.storage.dtype == Dtype::bfloat16 ? few_kernel<Dtype::bfloat16>
                                                               : few_kernel<Dtype::float16>;
  return launch_few(kernel, head_shape(shape), stream, arguments);
}

}  // namespace replayeval::mamba2::cuda
