// One output_only step of Kimi Delta Attention with a deltas ring, of a small batch, flushes included (few_cuda.cuh). A
// ring has a decay for each key channel, so each key is weighed before its products with k and q: a block's warps share
// out the keys, and blocks of the same head each weigh them all. The bits are those of replay_token_cuda.cuh.
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

constexpr int kColumns = FewTile::kMaxStateSize;
constexpr int kGateWarps = kColumns / 32;  // a channel a thread

// What a block's warps do. Each of kWarps has eight rows and some of the ring's entries; kGateWarps of them, others
// than the first if there are more, have the token's gates.
template <int kWarps>
struct Warps {
  static constexpr int kCount = kWarps;
  static constexpr int kEntries = kFewEntries / kWarps;  // of a warp
  static constexpr int kFirstGateWarp = kWarps == kGateWarps ? 0 : kGateWarps;

  __device__ static __forceinline__ int first_entry() { return warp_index() * kEntries; }
  __device__ static __forceinline__ bool has_gates() {
    return warp_index() >= kFirstGateWarp && warp_index() < kFirstGateWarp + kGateWarps;
  }
  // Of a warp that has gates.
  __device__ static __forceinline__ int channel() { return static_cast<int>(threadIdx.x) - 32 * kFirstGateWarp; }
};

// What the first warps make ready of the token beside.
enum class Role : int { k, q, beta };
__device__ __forceinline__ bool has_role(Role role) { return warp_index() == static_cast<int>(role); }

template <class W>
struct FewShared {
  float gates[kFewEntries][kColumns];  // the ring's
  float log_decay[kColumns];           // the token's
  float vector[2][kColumns];           // its k and q
  float by[kFewEntries][2];            // keys, weighed, · k and · q; entry `cursor` is the token
  float keys[kFewEntries][kColumns];   // by a flush: weighed
  RowFactors factors[W::kCount];
  float beta;
};

__device__ __forceinline__ FewRing ring_of(const FewArguments& a, const BlockHead& h) {
  const RingOffsets at(a.shape, a.form, h);
  FewRing ring(a.ring.k, a.ring.values, a.ring.log_decay, at.key_head, at.head, static_cast<int>(a.form.buffer_len),
               static_cast<int>(a.shape.value_dim));
  ring.scalars = a.ring.log_decay + at.head * kColumns;
  return ring;
}

template <Dtype kState>
__device__ __forceinline__ void prefetch_step(const FewArguments& a, const BlockHead& h, const FewRing& ring) {
  if (h.slot < 0 || h.slot >= a.state.slots) return;
  prefetch_few<kState>(a.state, h, ring);
  if (threadIdx.x == 0 && h.tile == 0) {
    prefetch_bulk(ring.scalars, static_cast<unsigned>(ring.length * kColumns) * 4U);
  }
}

// The lane's place in a tensor whose type is known at run time.
__device__ __forceinline__ const char* element_at(const void* data, std::int64_t index, Dtype dtype) {
  return static_cast<const char*>(data) + index * (dtype == Dtype::float32 ? 4 : 2);
}

// A warp's entries of the ring, and a channel of the token's gates.
template <class W>
struct KeyOperands {
  // Where they lie, known before they are.
  struct Places {
    const float* gates[W::kEntries];
    const char* keys[W::kEntries];
    const char* f;
    const float* dt_bias;
    const float* A_log;

    __device__ __forceinline__ Places(const FewArguments& a, const BlockHead& h, const FewRing& ring) {
      const int of_head = h.head * kColumns + W::channel();
      f = element_at(a.in.f, h.row * a.in.f_stride + of_head, a.in.dtype);
      dt_bias = a.parameters.dt_bias + of_head;
      A_log = a.parameters.A_log + h.head;
#pragma unroll
      for (int r = 0; r < W::kEntries; ++r) {
        const int j = min(W::first_entry() + r, ring.length - 1);
        gates[r] = ring.scalars + j * kColumns + FewTile::column_of(0);
        keys[r] = ring.entry(j) + FewTile::column_of(0) * 2;
      }
    }
  };

  Packed4<Dtype::float32> gates[W::kEntries];
  Packed4<Dtype::bfloat16> keys[W::kEntries];
  RawElement f;
  float A_log, dt_bias;

  __device__ __forceinline__ void load(const FewArguments& a, const Places& from) {
    if (W::has_gates()) {
      f.load(from.f, 0, a.in.dtype);
      dt_bias = *from.dt_bias;
      A_log = *from.A_log;
    }
#pragma unroll
    for (int r = 0; r < W::kEntries; ++r) {
      gates[r].load(from.gates[r], 0);
      keys[r].load(from.keys[r], 0);
    }
  }
  __device__ __forceinline__ void prepare(const FewArguments& a, FewShared<W>& shared) const {
    if (W::has_gates()) {
      shared.log_decay[W::channel()] =
          log_decay_of(f.decode(a.in.dtype), dt_bias, expf(A_log), a.parameters, a.in.dtype);
    }
#pragma unroll
    for (int r = 0; r < W::kEntries; ++r) {
      float gate[4];
      gates[r].unpack(gate);
      put(gate, shared.gates[W::first_entry() + r] + FewTile::column_of(0));
    }
  }
};

// A warp's rows of the checkpoint; of the lane's row the ring's entries and the token's v; and what its role reads.
template <Dtype kState, class W>
struct RowOperands {
  struct Places {
    const char* state;
    const std::uint16_t* entries[kOwnEntries];
    const char* v;
    const char* own;  // by the warp's role: k, q or b

    __device__ __forceinline__ Places(const FewArguments& a, const BlockHead& h, const FewRing& ring) {
      const int first_row = warp_index() * FewTile::kWarpRows;
      const int row = h.first_row + first_row + RowShare::row();
      state = element_at(a.state.data, h.state_offset + first_row * kColumns + FewTile::column_of(0), kState);
#pragma unroll
      for (int i = 0; i < kOwnEntries; ++i) {
        entries[i] = ring.rows + min(entry_of(lane_index() % 4, i), ring.length - 1) * ring.head_rows + row;
      }
      const std::int64_t token = h.row;
      v = element_at(a.in.v, token * a.in.v_stride + h.head * ring.head_rows + row, a.in.dtype);
      const int column = h.group * kColumns + FewTile::column_of(0);
      own = has_role(Role::k)   ? element_at(a.in.k, token * a.in.k_stride + column, a.in.dtype)
            : has_role(Role::q) ? element_at(a.in.q, token * a.in.q_stride + column, a.in.dtype)
                                : element_at(a.in.b, token * a.in.b_stride + h.head, a.in.dtype);
    }
  };

  typename FewTile::template Stored<kState> state;
  RowEntries entries;
  RawElement v, b;
  RawFour vector;

  __device__ __forceinline__ void load(const FewArguments& a, const Places& from) {
    if (has_role(Role::k) || has_role(Role::q)) {
      vector.load(from.own, 0, a.in.dtype, a.fours);
    } else if (has_role(Role::beta)) {
      b.load(from.own, 0, a.in.dtype);
    }
#pragma unroll
    for (int r = 0; r < FewTile::kRows; ++r) state[r][0].load(from.state, r * kColumns);
#pragma unroll
    for (int i = 0; i < kOwnEntries; ++i) entries.of[i] = *from.entries[i];
    v.load(from.v, 0, a.in.dtype);
  }
  __device__ __forceinline__ void prepare(const FewArguments& a, FewShared<W>& shared) const {
    if (has_role(Role::k) || has_role(Role::q)) {
      float x[1][4];
      vector.decode(a.in.dtype, a.fours, x[0]);
      normalise_row(a.parameters, a.in.dtype, kColumns, x);
      if (has_role(Role::q)) multiply_row(x, 1.0F / sqrtf(static_cast<float>(kColumns)));
      put(x[0], shared.vector[has_role(Role::q) ? 1 : 0] + FewTile::column_of(0));
    } else if (has_role(Role::beta)) {
      shared.beta = beta_of(b.decode(a.in.dtype), a.parameters, a.in.dtype);  // by every lane, the same
    }
  }
};

// As window_cuda.cuh's weigh(), the token being entry `cursor`, of the lane's channels: what the decays after each of
// the warp's entries add up to, and all of them.
template <class W>
__device__ __forceinline__ void sum_decays(const FewShared<W>& shared, int cursor, float (&after)[W::kEntries][4],
                                           float (&all)[4]) {
  constexpr int kAtOnce = 4;
  load4<Dtype::float32>(shared.log_decay, FewTile::column_of(0), all);
#pragma unroll
  for (float& sum : all) sum = 0.0F + sum;
#pragma unroll 1
  for (int first = cursor / kAtOnce * kAtOnce; first >= 0; first -= kAtOnce) {
    float gates[kAtOnce][4];
#pragma unroll
    for (int r = 0; r < kAtOnce; ++r) {
      load4<Dtype::float32>(shared.gates[first + r], FewTile::column_of(0), gates[r]);
    }
#pragma unroll
    for (int r = kAtOnce - 1; r >= 0; --r) {
      const bool own = first + r / W::kEntries * W::kEntries == W::first_entry();
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        if (own) after[r % W::kEntries][i] = all[i];
        if (first + r < cursor) all[i] = all[i] + gates[r][i];
      }
    }
  }
}

// k (0) or q (1), the lane's columns.
template <class W>
__device__ __forceinline__ void get_vector(const FewShared<W>& shared, int which, float (&x)[4]) {
  load4<Dtype::float32>(shared.vector[which], FewTile::column_of(0), x);
}

// The warp's entries, of which those past the token mean nothing: their keys, weighed, times k and q, to by[]; or, by a
// flush, to keys[].
template <class W>
__device__ __forceinline__ void weigh_keys(const Packed4<Dtype::bfloat16> (&stored)[W::kEntries],
                                           const float (&after)[W::kEntries][4], int cursor, bool flush,
                                           FewShared<W>& shared) {
  float keys[W::kEntries][4];
#pragma unroll
  for (int r = 0; r < W::kEntries; ++r) {
    stored[r].unpack(keys[r]);
#pragma unroll
    for (int i = 0; i < 4; ++i) keys[r][i] = expf(after[r][i]) * keys[r][i];
  }
  if (flush) {
#pragma unroll
    for (int r = 0; r < W::kEntries; ++r) put(keys[r], shared.keys[W::first_entry() + r] + FewTile::column_of(0));
    return;
  }
  float k[1][4];
  float q[1][4];
  get_vector(shared, 0, k[0]);
  get_vector(shared, 1, q[0]);
  float shares[2 * W::kEntries];
#pragma unroll
  for (int r = 0; r < W::kEntries; ++r) {
#pragma unroll
    for (int i = 0; i < 4; ++i) keys[r][i] = W::first_entry() + r == cursor ? k[0][i] : keys[r][i];
    shares[r] = dot_share(keys[r], k);
    shares[W::kEntries + r] = dot_share(keys[r], q);
  }
  const float product = fold_all<2 * W::kEntries>(shares);
  const int index = lane_index() / (32 / (2 * W::kEntries));
  // By the lanes that have it, the same value.
  shared.by[W::first_entry() + index % W::kEntries][index / W::kEntries] = product;
}

// The checkpoint's rows times k and q, both decayed, of the lane's row.
template <class W>
__device__ __forceinline__ void read_rows(const FewShared<W>& shared, const float (&decay)[4], const FewTile& tile,
                                          float& from_k, float& from_q) {
  float x[2][1][4];
#pragma unroll
  for (int which = 0; which < 2; ++which) {
    get_vector(shared, which, x[which][0]);
#pragma unroll
    for (int i = 0; i < 4; ++i) x[which][0][i] = decay[i] * x[which][0][i];
  }
  from_k = tile.dot(x[0]);
  from_q = tile.dot(x[1]);
}

// Between flushes: y of the lane's row and its d. deltas: those of the ring's entries.
template <class W>
__device__ __forceinline__ float finish_row(const FewShared<W>& shared, const float (&deltas)[kFewEntries], float v,
                                            int cursor, float from_k, float from_q, float& d) {
  float4 by[kFewEntries / 2];
#pragma unroll
  for (int pair = 0; pair < kFewEntries / 2; ++pair) by[pair] = reinterpret_cast<const float4*>(shared.by)[pair];
  const float beta = shared.beta;
  const float k_by_q = shared.by[cursor][1];
  float held = from_k;
  float y = from_q;
#pragma unroll
  for (int j = 0; j < kFewEntries - 1; ++j) {
    const float4 two = by[j / 2];
    const float next_held = fmaf(j % 2 == 0 ? two.x : two.z, deltas[j], held);
    const float next_y = fmaf(j % 2 == 0 ? two.y : two.w, deltas[j], y);
    held = j < cursor ? next_held : held;
    y = j < cursor ? next_y : y;
  }
  d = beta * (v - held);
  return fmaf(k_by_q, d, y);
}

// By a flush: y of the lane's row; S_w becomes the checkpoint.
template <Dtype kState, class W>
__device__ __forceinline__ float flush_rows(const FewArguments& a, const BlockHead& h, const FewShared<W>& shared,
                                            const RowFactors& factors, float v, int cursor, FewTile& tile) {
  add_factors(factors, cursor, tile,
              [&](int j, float(&column)[4]) { load4<Dtype::float32>(shared.keys[j], FewTile::column_of(0), column); });
  float x[1][4];
  get_vector(shared, 0, x[0]);
  const float d = shared.beta * (v - tile.dot(x));
  float spread[FewTile::kRows];
  FewTile::spread(d, spread);
  tile.add_outer(spread, x);
  get_vector(shared, 1, x[0]);
  const float y = tile.dot(x);
  store_few<kState>(a.state, h, tile);
  return y;
}

// The token becomes the ring's entry `cursor`, but for d.
template <class W>
__device__ __forceinline__ void append_shared(const FewArguments& a, const BlockHead& h, int cursor,
                                              const FewShared<W>& shared) {
  if (h.tile != 0) return;
  const RingOffsets at(a.shape, a.form, h);
  if (W::has_gates()) a.ring.log_decay[(at.head + cursor) * kColumns + W::channel()] = shared.log_decay[W::channel()];
  if (!h.leads_group || !has_role(Role::k)) return;
  float k[4];
  get_vector(shared, 0, k);
  store4<Dtype::bfloat16>(a.ring.k, (at.key_head + cursor) * kColumns + FewTile::column_of(0), k);
}

// Once the token is ready: y of the warp's rows, and their d to the ring or S_w to the checkpoint. all: of the decays;
// weigh() weighs the warp's keys and brings the block together.
template <Dtype kState, class W, class Weigh>
__device__ __forceinline__ void finish_rows(const FewArguments& a, const BlockHead& h,
                                            const RowOperands<kState, W>& operands, const float (&all)[4], int cursor,
                                            bool flush, FewShared<W>& shared, FewTile& tile, const Weigh& weigh) {
  const int row = tile.block_row + RowShare::row();
  float decay[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) decay[i] = expf(all[i]);
  tile.template unpack<kState>(operands.state);
  const float v = operands.v.decode(a.in.dtype);
  float y;
  if (flush) {
    float factor[kOwnEntries];
#pragma unroll
    for (int i = 0; i < kOwnEntries; ++i) factor[i] = decode_bfloat16(operands.entries.of[i]);
    RowFactors& factors = shared.factors[warp_index()];
    put_factors(factor, factors);
#pragma unroll
    for (int r = 0; r < FewTile::kRows; ++r) {
#pragma unroll
      for (int i = 0; i < 4; ++i) tile.s[r][0][i] = decay[i] * tile.s[r][0][i];
    }
    weigh();
    y = flush_rows<kState>(a, h, shared, factors, v, cursor, tile);
  } else {
    float from_k;
    float from_q;
    float deltas[kFewEntries];
    read_rows(shared, decay, tile, from_k, from_q);
#pragma unroll
    for (int j = 0; j < kFewEntries; ++j) deltas[j] = operands.entries.at(j);
    weigh();
    float d;
    y = finish_row(shared, deltas, v, cursor, from_k, from_q, d);
    if (lane_index() % 4 == 0) {
      const RingOffsets at(a.shape, a.form, h);
      const auto V = static_cast<int>(a.shape.value_dim);
      store_element(a.ring.values, (at.head + cursor) * V + h.first_row + row, d, Dtype::bfloat16);
    }
  }
  if (lane_index() % 4 == 0) {
    store_element(a.out.y, h.x_offset(a.shape, h.row, a.out.y_stride) + row, y, a.out.dtype);
  }
}

template <class W, Dtype kState>
__global__ void __launch_bounds__(32 * W::kCount, 16 / W::kCount)
    few_channels_kernel(const __grid_constant__ FewArguments a) {
  __shared__ __align__(16) FewShared<W> shared;
  // What can be known before the launches before this one have ended; the slot may change until then.
  BlockHead h(a.shape, a.block, a.cut);
  FewRing ring = ring_of(a, h);
  typename KeyOperands<W>::Places key_places(a, h, ring);
  typename RowOperands<kState, W>::Places row_places(a, h, ring);
  prefetch_step<kState>(a, h, ring);
  wait_for_earlier_launches();
  let_later_launches_begin();
  if (a.block.slots != nullptr && a.block.slots[h.row] != h.slot) {
    h = BlockHead(a.shape, a.block, a.cut);
    ring = ring_of(a, h);
    key_places = typename KeyOperands<W>::Places(a, h, ring);
    row_places = typename RowOperands<kState, W>::Places(a, h, ring);
  }
  if (h.slot < 0 || h.slot >= a.state.slots) {
    return fill_y(a.shape, a.block, a.out, h, h.slot < 0 ? 0.0F : nanf(""));
  }
  const auto L = static_cast<int>(a.form.buffer_len);
  const int cursor = a.ring.cursor[h.slot];
  KeyOperands<W> keys;
  RowOperands<kState, W> rows;
  keys.load(a, key_places);
  rows.load(a, row_places);
  keys.prepare(a, shared);
  rows.prepare(a, shared);
  __syncthreads();
  // Only here: before it loads would wait for the cursor.
  if (cursor < 0 || cursor >= L) return fill_y(a.shape, a.block, a.out, h, nanf(""));
  const bool flush = cursor + 1 == L;
  float after[W::kEntries][4];
  float all[4];
  sum_decays(shared, cursor, after, all);
  FewTile tile(kColumns, h.rows);
  tile.active = true;
  finish_rows(a, h, rows, all, cursor, flush, shared, tile, [&] {
    if (W::first_entry() <= cursor) weigh_keys(keys.keys, after, cursor, flush, shared);
    __syncthreads();
  });
  if (!flush) append_shared(a, h, cursor, shared);
}

template <class W>
bool launch(cudaStream_t stream, const FewArguments& arguments) {
  const auto kernel = arguments.state.storage.dtype == Dtype::float32    ? few_channels_kernel<W, Dtype::float32>
                      : arguments.state.storage.dtype == Dtype::bfloat16 ? few_channels_kernel<W, Dtype::bfloat16>
                                                                         : few_channels_kernel<W, Dtype::float16>;
  return launch_few(kernel, head_shape(arguments.shape), stream, arguments, W::kCount, W::kCount * FewTile::kWarpRows);
}

// Measured on an H200, of which so many blocks keep every multiprocessor busy: with more, blocks of twice the rows
// weigh fewer keys twice.
constexpr std::int64_t kMostSmallBlocks = 132;

}  // namespace

bool replay_few_channels(cudaStream_t stream, const Shape& shape, const ReplayForm& form, const Block& block,
                         const Inputs& in, const Parameters& parameters, const State& state, const Ring& ring,
                         const Output& out) {
  const HeadShape heads = head_shape(shape);
  if (block.tokens != 1 || form.ring_form != RingForm::deltas || form.route != Route::output_only ||
      !takes_few(heads, block.batch, form.buffer_len, form.ring_dtype) ||
      !lies_in_fours(ring.log_decay, 0, Dtype::float32)) {
    return false;
  }
  const FewArguments arguments{{shape, form, block, in, parameters, state, ring, out, {}}, reads_fours(in)};
  using Small = Warps<kFewWarps>;
  using Large = Warps<2 * kFewWarps>;
  const std::int64_t small_blocks = block.batch * heads.heads * (heads.rows / kFewRows);
  const bool large = small_blocks > kMostSmallBlocks && heads.rows % (2 * kFewRows) == 0;
  return large ? launch<Large>(stream, arguments) : launch<Small>(stream, arguments);
}

}  // namespace replayeval::delta_rule::cuda
