// One output_only step of Gated DeltaNet with a deltas ring, of a small batch, flushes included (few_cuda.cuh). Each
// warp of a block also makes something ready: the token's k, its q, the gates, and the products of the ring's keys with
// k and q. The bits are those of replay_token_cuda.cuh.
#include "kernels/delta_rule/replay_token_cuda.cuh"
#include "kernels/delta_rule/stream_backends_cuda.h"
#include "kernels/delta_rule/stream_cuda.cuh"
#include "kernels/few_cuda.cuh"
#include "kernels/stream_ring_cuda.cuh"

namespace replayeval::delta_rule::cuda {
namespace {

struct FewArguments : ReplayArguments {
  bool fours;  // reads_fours()
};

enum class Role : int { k, q, gates, keys };

struct FewShared {
  FewFlushMemory flush;
  VectorParts vectors;       // k and q
  float by[kFewEntries][2];  // what an entry weighs times its key · k and key · q
  float weight[kFewEntries];
  float decay, beta, log_decay, k_by_q;
};

__device__ __forceinline__ bool has_role(Role role) { return warp_index() == static_cast<int>(role); }

__device__ __forceinline__ FewRing ring_of(const FewArguments& a, const BlockHead& h) {
  const RingOffsets at(a.shape, a.form, h);
  return {a.ring.k,
          a.ring.values,
          a.ring.log_decay,
          at.key_head,
          at.head,
          static_cast<int>(a.form.buffer_len),
          static_cast<int>(a.shape.value_dim)};
}

// A warp's eight rows of the checkpoint, on their way.
template <Dtype kState>
struct FewRows {
  static constexpr bool kProducts = kReadsProducts<FewTile, kState>;
  RowShare share;                                    // kProducts
  typename FewTile::template Stored<kState> stored;  // otherwise

  __device__ __forceinline__ void load(const FewArguments& a, const BlockHead& h, const FewTile& tile) {
    if constexpr (kProducts) {
      share.load(static_cast<const char*>(a.state.data) + h.state_offset * 2 +
                 (tile.block_row + RowShare::row()) * kRowBytes);
    } else {
      tile.template load<kState>(a.state.data, h.state_offset, stored);
    }
  }
  // S_0 k and S_0 q of the lane's row.
  __device__ __forceinline__ void dot(const VectorParts& vectors, FewTile& tile, float& from_k, float& from_q) const {
    if constexpr (kProducts) {
      RowShare none;
      none.fill_zero();
      float parts[4];
      multiply_rows(share, none, vectors, parts);
      from_k = add_parts(parts[0]);
      from_q = add_parts(parts[1]);
    } else {
      float x[1][4];
      tile.template unpack<kState>(stored);
      vectors.get(0, x[0]);
      from_k = tile.dot(x);
      vectors.get(1, x[0]);
      from_q = tile.dot(x);
    }
  }
};

// The gates' warp: an entry a lane.
struct GateOperands {
  RawElement b, f;
  float A_log, dt_bias, ring;

  __device__ __forceinline__ void load(const FewArguments& a, const BlockHead& h, const FewRing& from) {
    const std::int64_t row = h.row;
    ring = lane_index() < from.length ? from.scalars[lane_index()] : 0.0F;
    b.load(a.in.b, row * a.in.b_stride + h.head, a.in.dtype);
    f.load(a.in.f, row * a.in.f_stride + h.head, a.in.dtype);
    A_log = a.parameters.A_log[h.head];
    dt_bias = a.parameters.dt_bias[h.head];
  }
  // As weigh() of window_cuda.cuh, the token being entry `cursor`.
  __device__ __forceinline__ void prepare(const FewArguments& a, int cursor, FewShared& shared) const {
    const float own = log_decay_of(f.decode(a.in.dtype), dt_bias, expf(A_log), a.parameters, a.in.dtype);
    const float mine = lane_index() == cursor ? own : ring;
    float after;
    const float all = sum_after(mine, cursor, after);
    if (lane_index() <= cursor) shared.weight[lane_index()] = lane_index() == cursor ? 1.0F : expf(after);
    shared.decay = expf(all);  // by every lane, the same
    shared.log_decay = own;
    shared.beta = beta_of(b.decode(a.in.dtype), a.parameters, a.in.dtype);
  }
};

// By one warp: the token's k or q, made ready.
__device__ __forceinline__ void load_vector(const FewArguments& a, const BlockHead& h, bool is_q, RawFour& raw) {
  const std::int64_t row = h.row;
  const int column = h.group * FewTile::kMaxStateSize + FewTile::column_of(0);
  if (is_q) {
    raw.load(a.in.q, row * a.in.q_stride + column, a.in.dtype, a.fours);
  } else {
    raw.load(a.in.k, row * a.in.k_stride + column, a.in.dtype, a.fours);
  }
}
__device__ __forceinline__ void prepare_vector(const FewArguments& a, bool is_q, const RawFour& raw,
                                               VectorParts& vectors) {
  float x[1][4];
  raw.decode(a.in.dtype, a.fours, x[0]);
  normalise_row(a.parameters, a.in.dtype, FewTile::kMaxStateSize, x);
  if (is_q) multiply_row(x, 1.0F / sqrtf(static_cast<float>(FewTile::kMaxStateSize)));
  vectors.put(is_q ? 1 : 0, x[0]);
}

// Between flushes: y of the lane's row and its d, from S_0 k and S_0 q.
__device__ __forceinline__ float finish_row(const FewShared& shared, const RowEntries& own, float v, int cursor,
                                            float from_k, float from_q, float& d) {
  float held = shared.decay * from_k;
  float y = shared.decay * from_q;
#pragma unroll
  for (int j = 0; j < kFewEntries - 1; ++j) {
    const float delta = own.at(j);
    const float2 by = *reinterpret_cast<const float2*>(shared.by[j]);
    if (j < cursor) {
      held = fmaf(by.x, delta, held);
      y = fmaf(by.y, delta, y);
    }
  }
  d = shared.beta * (v - held);
  return fmaf(shared.k_by_q, d, y);
}

// By a flush: y of the lane's row; S_w becomes the checkpoint.
template <Dtype kState>
__device__ __forceinline__ float flush_rows(const FewArguments& a, const BlockHead& h, const FewRing& ring,
                                            FewRows<kState>& rows, const RowEntries& own, float v, int cursor,
                                            FewShared& shared, FewTile& tile) {
  if constexpr (FewRows<kState>::kProducts) tile.template load<kState>(a.state.data, h.state_offset, rows.stored);
  tile.template unpack<kState>(rows.stored);
  sum_few<kState>(ring, own, cursor, shared.decay, shared.weight, shared.flush, tile);
  float x[1][4];
  shared.vectors.get(0, x[0]);
  const float d = shared.beta * (v - tile.dot(x));
  float spread[FewTile::kRows];
  FewTile::spread(d, spread);
  tile.add_outer(spread, x);
  shared.vectors.get(1, x[0]);
  const float y = tile.dot(x);
  store_few<kState>(a.state, h, tile);
  return y;
}

// The token becomes the ring's entry `cursor`.
__device__ __forceinline__ void append_few(const FewArguments& a, const BlockHead& h, int cursor, int row, float d,
                                           const FewShared& shared) {
  const RingOffsets at(a.shape, a.form, h);
  const auto V = static_cast<int>(a.shape.value_dim);
  if (lane_index() % 4 == 0) {
    store_element(a.ring.values, (at.head + cursor) * V + h.first_row + row, d, Dtype::bfloat16);
  }
  if (h.tile != 0 || !has_role(Role::gates)) return;
  if (lane_index() == 0) a.ring.log_decay[at.head + cursor] = shared.log_decay;
  if (!h.leads_group) return;
  float k[4];
  shared.vectors.get(0, k);
  Packed4<Dtype::bfloat16> packed;
  packed.pack(k);
  packed.store(a.ring.k, (at.key_head + cursor) * FewTile::kMaxStateSize + FewTile::column_of(0));
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
  FewRows<kState> rows;
  RowEntries own;
  RawElement raw_v;
  RowShare keys[2];
  const auto load_rows = [&] {
    rows.load(a, h, tile);
    own.load(ring, h.first_row + row);
    raw_v.load(a.in.v, h.x_offset(a.shape, h.row, a.in.v_stride) + row, a.in.dtype);
  };
  if (has_role(Role::gates)) {
    GateOperands operands;
    operands.load(a, h, ring);
    load_rows();
    operands.prepare(a, cursor, shared);
  } else if (has_role(Role::keys)) {
    keys[0].load(ring.entry(RowShare::row()));
    keys[1].load(ring.entry(RowShare::row() + 8));
    load_rows();
  } else {
    RawFour raw;
    load_vector(a, h, has_role(Role::q), raw);
    load_rows();
    prepare_vector(a, has_role(Role::q), raw, shared.vectors);
  }
  if (cursor < 0 || cursor >= L) return fill_y(a.shape, a.block, a.out, h, nanf(""));
  __syncthreads();
  const float v = raw_v.decode(a.in.dtype);
  float y;
  if (cursor + 1 == L) {
    y = flush_rows<kState>(a, h, ring, rows, own, v, cursor, shared, tile);
  } else {
    if (has_role(Role::keys)) {
      RowSums sums;
#pragma unroll
      for (int m = 0; m < kRowWords; ++m) {
        sums.add(m, keys[0].words[m], keys[1].words[m], vector_word(shared.vectors, m));
      }
      put_products(sums, [&](int j, int x, float product) {
        if (j < cursor) shared.by[j][x] = shared.weight[j] * product;
      });
    } else if (has_role(Role::k)) {
      float k[4];
      float q[4];
      shared.vectors.get(0, k);
      shared.vectors.get(1, q);
      shared.k_by_q = row_dot(k, q);  // by every lane, the same value
    }
    float from_k;
    float from_q;
    rows.dot(shared.vectors, tile, from_k, from_q);
    __syncthreads();
    float d;
    y = finish_row(shared, own, v, cursor, from_k, from_q, d);
    append_few(a, h, cursor, row, d, shared);
  }
  if (lane_index() % 4 == 0) {
    store_element(a.out.y, h.x_offset(a.shape, h.row, a.out.y_stride) + row, y, a.out.dtype);
  }
}

}  // namespace

bool replay_few(cudaStream_t stream, Family family, const Shape& shape, const ReplayForm& form, const Block& block,
                const Inputs& in, const Parameters& parameters, const State& state, const Ring& ring,
                const Output& out) {
  if (family == Family::kda) {
    return replay_few_channels(stream, shape, form, block, in, parameters, state, ring, out);
  }
  if (block.tokens != 1 || form.ring_form != RingForm::deltas || form.route != Route::output_only ||
      !takes_few(head_shape(shape), block.batch, form.buffer_len, form.ring_dtype)) {
    return false;
  }
  const FewArguments arguments{{shape, form, block, in, parameters, state, ring, out, {}}, reads_fours(in)};
  const auto kernel = state.storage.dtype == Dtype::float32    ? few_kernel<Dtype::float32>
                      : state.storage.dtype == Dtype::bfloat16 ? few_kernel<Dtype::bfloat16>
                                                               : few_kernel<Dtype::float16>;
  return launch_few(kernel, head_shape(shape), stream, arguments);
}

}  // namespace replayeval::delta_rule::cuda
