// One output_only step of Gated DeltaNet with a deltas ring, of a small batch, flushes included (few_cuda.cuh). Four
// warps have rows of the state; two helpers make ready what the ring's entries weigh, and their keys' products with k
// and q. Every warp that multiplies makes k and q ready for itself: so between flushes a block comes together only
// once. The bits are those of replay_token_cuda.cuh.
#include "kernels/delta_rule/replay_token_cuda.cuh"
#include "kernels/delta_rule/stream_backends_cuda.h"
#include "kernels/delta_rule/stream_cuda.cuh"
#include "kernels/few_cuda.cuh"
#include "kernels/stream_ring_cuda.cuh"

namespace replayeval::delta_rule::cuda {
namespace {

struct HeadArguments : ReplayArguments {};

enum class Helper : int { keys = kFewWarps, gates };
constexpr int kThreads = 32 * (kFewWarps + kFewHelpers);
template <Dtype kState>
constexpr int kStateBytes = kState == Dtype::float32 ? 4 : 2;

struct HeadShared {
  FewFlushMemory flush;
  VectorParts vectors[kFewWarps + 1];              // k and q, of each warp that multiplies
  float by[2][kFewEntries];                        // the keys' products with k and with q
  float weight[kFewEntries], decay, beta, k_by_q;  // of the entries; of the token
};

__device__ __forceinline__ bool is_helper(Helper helper) { return warp_index() == static_cast<int>(helper); }
__device__ __forceinline__ bool has_rows() { return warp_index() < kFewWarps; }

__device__ __forceinline__ FewRing head_ring(const HeadArguments& a, const BlockHead& h) {
  const RingOffsets at(a.shape, a.form, h);
  return {a.ring.k,
          a.ring.values,
          a.ring.log_decay,
          at.key_head,
          at.head,
          static_cast<int>(a.form.buffer_len),
          static_cast<int>(a.shape.value_dim)};
}

// Where a block's operands lie: in the caches of its slot, and of its token.
struct HeadPlaces {
  FewRing ring;
  const std::int32_t* cursor;
  const char* state;  // the block's rows
  const char *k, *q;  // the lane's columns
  const char* v;      // the block's rows
  char* y;

  __device__ __forceinline__ HeadPlaces(const HeadArguments& a, const BlockHead& h, int state_bytes)
      : ring(head_ring(a, h)), cursor(a.ring.cursor + h.slot) {
    state = static_cast<const char*>(a.state.data) + h.state_offset * state_bytes;
    const std::int64_t row = h.row;
    const int column = h.group * FewTile::kMaxStateSize + FewTile::column_of(0);
    k = element_at(a.in.k, row * a.in.k_stride + column, a.in.dtype);
    q = element_at(a.in.q, row * a.in.q_stride + column, a.in.dtype);
    v = element_at(a.in.v, h.x_offset(a.shape, row, a.in.v_stride), a.in.dtype);
    y = const_cast<char*>(element_at(a.out.y, h.x_offset(a.shape, row, a.out.y_stride), a.out.dtype));
  }
  __device__ __forceinline__ void keep() {
    replayeval::cuda::keep(ring);
    replayeval::cuda::keep(cursor);
    replayeval::cuda::keep(state);
    replayeval::cuda::keep(k);
    replayeval::cuda::keep(q);
    replayeval::cuda::keep(v);
    replayeval::cuda::keep(y);
  }
};

// The token's k and q, four columns a lane.
struct TokenVectors {
  RawFour raw_k, raw_q;

  __device__ __forceinline__ void load(const HeadArguments& a, const HeadPlaces& at) {
    raw_k.load(at.k, 0, a.in.dtype, true);
    raw_q.load(at.q, 0, a.in.dtype, true);
  }
  // By one warp, ready for the recurrence.
  __device__ __forceinline__ void take(const HeadArguments& a, float (&k)[1][4], float (&q)[1][4]) const {
    raw_k.decode(a.in.dtype, true, k[0]);
    raw_q.decode(a.in.dtype, true, q[0]);
    normalise_rows(a.parameters, a.in.dtype, FewTile::kMaxStateSize, k, q);
    multiply_row(q, 1.0F / sqrtf(static_cast<float>(FewTile::kMaxStateSize)));
  }
};

// The gates' warp, an entry a lane: what entries weigh, as weigh() of window_cuda.cuh, the token being entry `cursor`.
struct GateOperands {
  RawElement b, f;
  float A_log, dt_bias, ring;

  __device__ __forceinline__ void load(const HeadArguments& a, const BlockHead& h, const HeadPlaces& at) {
    const std::int64_t row = h.row;
    b.load(a.in.b, row * a.in.b_stride + h.head, a.in.dtype);
    f.load(a.in.f, row * a.in.f_stride + h.head, a.in.dtype);
    A_log = load_now(a.parameters.A_log + h.head);
    dt_bias = load_now(a.parameters.dt_bias + h.head);
    ring = load_now(at.ring.scalars + min(lane_index(), at.ring.length - 1));
  }
  // Returns the token's gate.
  __device__ __forceinline__ float prepare(const HeadArguments& a, int cursor, HeadShared& shared) const {
    const float own = log_decay_of(f.decode(a.in.dtype), dt_bias, expf(A_log), a.parameters, a.in.dtype);
    const float mine = lane_index() == cursor ? own : ring;
    float after;
    const float all = sum_after(mine, cursor, after);
    const float weight = expf(after);
    if (lane_index() <= cursor) shared.weight[lane_index()] = lane_index() == cursor ? 1.0F : weight;
    shared.decay = expf(all);  // by every lane, the same
    shared.beta = beta_of(b.decode(a.in.dtype), a.parameters, a.in.dtype);
    return own;
  }
};

// The warp that has the ring's keys.
struct KeyOperands {
  TokenVectors token;
  RowShare first, last;

  __device__ __forceinline__ void load(const HeadArguments& a, const HeadPlaces& at) {
    token.load(a, at);
    load_now(at.ring.entry(RowShare::row()), first);
    load_now(at.ring.entry(RowShare::row() + 8), last);
  }
  // k: the token's.
  __device__ __forceinline__ void prepare(const HeadArguments& a, float (&k)[1][4], HeadShared& shared) const {
    float q[1][4];
    token.take(a, k, q);
    VectorParts& vectors = shared.vectors[kFewWarps];
    vectors.put(0, k[0]);
    vectors.put(1, q[0]);
    __syncwarp();
    RowSums sums;
#pragma unroll
    for (int m = 0; m < kRowWords; ++m) sums.add(m, first.words[m], last.words[m], vector_word(vectors, m));
    put_products(sums, [&](int j, int v, float product) { shared.by[v][j] = product; });
    shared.k_by_q = row_dot(k[0], q[0]);  // by every lane, the same value
  }
};

// What a helper does before the block comes together; returns the cursor. Where that is out of range, nothing.
__device__ __forceinline__ int help(const HeadArguments& a, const BlockHead& h, const HeadPlaces& at,
                                    HeadShared& shared) {
  int cursor;
  const auto L = static_cast<int>(a.form.buffer_len);
  const RingOffsets offsets(a.shape, a.form, h);
  if (is_helper(Helper::gates)) {
    GateOperands operands;
    operands.load(a, h, at);
    cursor = load_last(at.cursor);
    if (cursor < 0 || cursor >= L) return cursor;
    const float log_decay = operands.prepare(a, cursor, shared);
    if (cursor + 1 < L && h.tile == 0 && lane_index() == 0) a.ring.log_decay[offsets.head + cursor] = log_decay;
  } else {
    KeyOperands operands;
    operands.load(a, at);
    cursor = load_last(at.cursor);
    if (cursor < 0 || cursor >= L) return cursor;
    float k[1][4];
    operands.prepare(a, k, shared);
    if (cursor + 1 == L || h.tile != 0 || !h.leads_group) return cursor;
    Packed4<Dtype::bfloat16> packed;
    packed.pack(k[0]);
    packed.store(a.ring.k, (offsets.key_head + cursor) * FewTile::kMaxStateSize + FewTile::column_of(0));
  }
  return cursor;
}

// A warp's eight rows of the checkpoint, on their way, as products or the tile take them.
template <Dtype kState>
struct HeadRows {
  static constexpr bool kProducts = kReadsProducts<FewTile, kState>;
  RowShare share;
  typename FewTile::template Stored<kState> stored;

  __device__ __forceinline__ void load(const char* state) {
    if constexpr (kProducts) {
      load_now(state + (warp_index() * FewTile::kWarpRows + RowShare::row()) * kRowBytes, share);
    } else {
      load_now<kState>(state, stored);
    }
  }
  // Of the lane's row the product with k in the first two of its four lanes, with q in the last two.
  __device__ __forceinline__ float dot(const float (&k)[1][4], const float (&q)[1][4], VectorParts& vectors,
                                       FewTile& tile) const {
    if constexpr (kProducts) {
      vectors.put(0, k[0]);
      vectors.put(1, q[0]);
      __syncwarp();
      RowShare none;
      none.fill_zero();
      float parts[4];
      multiply_rows(share, none, vectors, parts);
      const bool second = (lane_index() & 2) != 0;
      const float given = __shfl_xor_sync(0xFFFFFFFFU, second ? parts[0] : parts[1], 2);
      const float half = (second ? parts[1] : parts[0]) + given;
      return half + __shfl_xor_sync(0xFFFFFFFFU, half, 1);
    } else {
      float shares[2 * FewTile::kRows];
      tile.template unpack<kState>(stored);
#pragma unroll
      for (int r = 0; r < FewTile::kRows; ++r) {
        shares[2 * r] = dot_share(tile.s[r][0], k);
        shares[2 * r + 1] = dot_share(tile.s[r][0], q);
      }
      return fold_all<2 * FewTile::kRows>(shares);
    }
  }
};

// What a warp has on its way: k and q, its rows of the checkpoint, and of the lane's row the ring's d and the token's
// v.
template <Dtype kState>
struct HeadLoads {
  TokenVectors token;
  RawElement v;
  RowEntries entries;
  HeadRows<kState> rows;

  __device__ __forceinline__ void load(const HeadArguments& a, const BlockHead& h, const HeadPlaces& at, int row) {
    token.load(a, at);
    v.load(at.v, row, a.in.dtype);
    entries.load_now(at.ring, h.first_row + row);
    rows.load(at.state);
  }
};

// Of the lane's row, between flushes: what y and d are made of.
struct HeadRow {
  float from = 0.0F;  // as HeadRows::dot() leaves it
  float entry[kFewEntries - 1] = {};
  float v = 0.0F;

  template <Dtype kState>
  __device__ __forceinline__ void take(const HeadArguments& a, const HeadLoads<kState>& loads, HeadShared& shared,
                                       FewTile& tile) {
    float k[1][4];
    float q[1][4];
    loads.token.take(a, k, q);
    from = loads.rows.dot(k, q, shared.vectors[warp_index()], tile);
#pragma unroll
    for (int j = 0; j < kFewEntries - 1; ++j) entry[j] = loads.entries.at(j);
    v = loads.v.decode(a.in.dtype);
  }
  // y and d, once the helpers are ready.
  __device__ __forceinline__ float finish(const HeadShared& shared, int cursor, float& d) const {
    const bool second = (lane_index() & 2) != 0;
    float sum = shared.decay * from;
#pragma unroll
    for (int first = 0; first < kFewEntries; first += 4) {
      float weight[4];
      float by[4];
      load4<Dtype::float32>(shared.weight, first, weight);
      load4<Dtype::float32>(shared.by[second ? 1 : 0], first, by);
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        if (first + i < kFewEntries - 1 && first + i < cursor) sum = fmaf(weight[i] * by[i], entry[first + i], sum);
      }
    }
    const float other = __shfl_xor_sync(0xFFFFFFFFU, sum, 2);
    d = shared.beta * (v - (second ? other : sum));
    return fmaf(shared.k_by_q, d, second ? sum : other);
  }
};

// The token becomes the ring's entry `cursor`: its d, of the lane's row.
__device__ __forceinline__ void append_row(const HeadArguments& a, const BlockHead& h, int cursor, int row, float d) {
  if (lane_index() % 4 != 0) return;
  const auto V = static_cast<int>(a.shape.value_dim);
  const RingOffsets at(a.shape, a.form, h);
  store_element(a.ring.values, (at.head + cursor) * V + h.first_row + row, d, Dtype::bfloat16);
}

// By a flush: y of the lane's row; S_w becomes the checkpoint. All is loaded once more, from the caches: what a flush
// keeps in registers for its own sake every step would have to.
template <Dtype kState>
__device__ __forceinline__ float flush_rows(const HeadArguments& a, const BlockHead& h, int cursor, int row,
                                            HeadShared& shared, FewTile& tile) {
  const HeadPlaces at(a, h, kStateBytes<kState>);
  HeadLoads<kState> loads;
  loads.token.load(a, at);
  loads.v.load(at.v, row, a.in.dtype);
  loads.entries.load_now(at.ring, h.first_row + row);
  load_now<kState>(at.state, loads.rows.stored);
  tile.template unpack<kState>(loads.rows.stored);
  sum_few<kState>(at.ring, loads.entries, cursor, shared.decay, shared.weight, shared.flush, tile);
  float k[1][4];
  float q[1][4];
  loads.token.take(a, k, q);
  const float d = shared.beta * (loads.v.decode(a.in.dtype) - tile.dot(k));
  float spread[FewTile::kRows];
  FewTile::spread(d, spread);
  tile.add_outer(spread, k);
  const float y = tile.dot(q);
  store_few<kState>(a.state, h, tile);
  return y;
}

template <Dtype kState>
__global__ void __launch_bounds__(kThreads, kFewBlocks) few_kernel(const __grid_constant__ HeadArguments a) {
  __shared__ __align__(16) HeadShared shared;
  BlockHead h(a.shape, a.block, a.cut);
  HeadPlaces at(a, h, kStateBytes<kState>);
  if (h.slot >= 0 && h.slot < a.state.slots) prefetch_few<kState>(a.state, h, at.ring);
  at.keep();
  touch_arguments(a);
  wait_for_earlier_launches();
  let_later_launches_begin();
  if (a.block.slots != nullptr) {
    h.read_slot(a.shape, a.block);
    at = HeadPlaces(a, h, kStateBytes<kState>);
  }
  if (h.slot < 0 || h.slot >= a.state.slots) {
    return fill_y(a.shape, a.block, a.out, h, h.slot < 0 ? 0.0F : nanf(""));
  }
  const auto L = static_cast<int>(a.form.buffer_len);
  FewTile tile(FewTile::kMaxStateSize, kFewRows);
  tile.active = true;
  const int row = tile.block_row + RowShare::row();
  int cursor;
  HeadRow own;
  if (has_rows()) {
    HeadLoads<kState> loads;
    loads.load(a, h, at, row);
    cursor = load_last(at.cursor);
    if (cursor >= 0 && cursor < L) own.take(a, loads, shared, tile);
  } else {
    cursor = help(a, h, at, shared);
  }
  if (cursor < 0 || cursor >= L) return fill_y(a.shape, a.block, a.out, h, nanf(""));
  __syncthreads();
  const bool flush = cursor + 1 == L;
  if (has_rows()) {
    float y;
    if (flush) {
      y = flush_rows<kState>(a, h, cursor, row, shared, tile);
    } else {
      float d;
      y = own.finish(shared, cursor, d);
      append_row(a, h, cursor, row, d);
    }
    if (lane_index() % 4 == 0) store_element(at.y, row, y, a.out.dtype);
  } else if (flush) {
    lay_out_few<kState>(at.ring, cursor, shared.flush);
  }
}

}  // namespace

bool replay_few(cudaStream_t stream, Family family, const Shape& shape, const ReplayForm& form, const Block& block,
                const Inputs& in, const Parameters& parameters, const State& state, const Ring& ring,
                const Output& out) {
  if (family == Family::kda) {
    return replay_few_channels(stream, shape, form, block, in, parameters, state, ring, out);
  }
  if (block.tokens != 1 || form.ring_form != RingForm::deltas || form.route != Route::output_only || !reads_fours(in) ||
      !takes_few(head_shape(shape), block.batch, form.buffer_len, form.ring_dtype)) {
    return false;
  }
  const HeadArguments arguments{{shape, form, block, in, parameters, state, ring, out, {}}};
  const auto kernel = state.storage.dtype == Dtype::float32    ? few_kernel<Dtype::float32>
                      : state.storage.dtype == Dtype::bfloat16 ? few_kernel<Dtype::bfloat16>
                                                               : few_kernel<Dtype::float16>;
  return launch_few(kernel, head_shape(shape), stream, arguments, kThreads / 32);
}

}  // namespace replayeval::delta_rule::cuda
