// The replay executor over a block of tokens: the checkpoint in registers, the ring in shared memory, each rounded
// where a chain of single steps would store it. Also the single step where that takes the state route.
#pragma once

#include "kernels/mamba2/replay_arguments_cuda.cuh"
#include "kernels/mamba2/ring_cuda.cuh"
#include "kernels/mamba2/token_cuda.cuh"

namespace replayeval::mamba2::cuda {

// From here on the entry is what the ring's memory would give back.
__device__ __forceinline__ void round_entry(const ReplayArguments& a, const BlockHead& h, int position,
                                            const SharedRing& ring) {
  if (a.form.ring_dtype == Dtype::float32) return;
  const auto N = static_cast<int>(a.shape.state_size);
  const auto threads = static_cast<int>(blockDim.x);
  float* B = ring.B + position * N;
  float* x = ring.x + position * ring.x_stride;
  for (int i = static_cast<int>(threadIdx.x); i < N; i += threads) B[i] = rounded<Dtype::bfloat16>(B[i], false);
  for (int i = static_cast<int>(threadIdx.x); i < h.rows; i += threads) x[i] = rounded<Dtype::bfloat16>(x[i], false);
}

// Appends an entry to the ring's memory: x by every block, B and dt by one of those that share them. B(i) and x(i) are
// the unrounded values.
template <class GetB, class GetX>
__device__ __forceinline__ void append_entry(const ReplayArguments& a, const BlockHead& h, int position, float dt,
                                             const GetB& B, const GetX& x) {
  const auto N = static_cast<int>(a.shape.state_size);
  const auto threads = static_cast<int>(blockDim.x);
  const RingOffsets at(a.shape, static_cast<int>(a.form.buffer_len), h);
  const std::int64_t x_start = (at.head + position) * static_cast<int>(a.shape.head_dim) + h.first_row;
  for (int i = static_cast<int>(threadIdx.x); i < h.rows; i += threads) {
    store_element(a.ring.x, x_start + i, x(i), a.form.ring_dtype);
  }
  if (h.tile != 0) return;
  if (threadIdx.x == 0) a.ring.dt[at.head + position] = dt;
  if (!h.leads_group) return;
  for (int i = static_cast<int>(threadIdx.x); i < N; i += threads) {
    store_element(a.ring.B, (at.group + position) * N + i, B(i), a.form.ring_dtype);
  }
}

__device__ __forceinline__ void put(const ReplayArguments& a, const BlockHead& h, const TokenOperands& operands,
                                    int position, const SharedRing& to) {
  operands.store(a.shape, h, to.x + position * to.x_stride, to.B + position * static_cast<int>(a.shape.state_size),
                 to.C);
  if (TokenOperands::has_dt()) to.dt[position] = operands.dt(a.parameters, h.head);  // every lane, the same value
}

// S_w C by the state route. On a flush the tile becomes S_w, rounded; otherwise it stays the checkpoint, unless
// kInPlace says that nobody reads it again.
template <class T, Dtype kState, bool kInPlace>
__device__ __forceinline__ float dot_by_state(const ReplayArguments& a, T& tile, const SharedRing& ring, int count,
                                              bool flush, ThreadCounts& counts) {
  float sum;
  if constexpr (kInPlace) {
    apply_ring_and_token<T, kState>(tile, a.form, ring, count);
    sum = tile.dot(ring.C);
  } else {
    T state = tile;
    apply_ring_and_token<T, kState>(state, a.form, ring, count);
    sum = state.dot(ring.C);
    if (flush) tile = state;
  }
  if (flush) {
    typename T::template Stored<kState> stored;
    tile.template pack<kState>(a.state.storage.overflow == Overflow::saturate, a.state.counts != nullptr, counts,
                               stored);
    tile.template unpack<kState>(stored);
  }
  return sum;
}

// What the compiler may count on: nothing; that the checkpoint is not read again after the state route's product (as in
// a single step, or by the output_only route, where only a flush takes the state route); or that this is a single step
// that flushes.
enum class Known { nothing, in_place, one_flush };

// One token, put at `position`, down to its y.
template <class T, Dtype kState, Known kKnown>
__device__ __forceinline__ void replay_token(const ReplayArguments& a, const BlockHead& h, T& tile,
                                             const SharedRing& ring, int position, std::int64_t token,
                                             ThreadCounts& counts) {
  const int count = position + 1;
  const bool flush = kKnown == Known::one_flush || count == a.form.buffer_len;
  const bool by_state = flush || a.form.route == Route::state_and_output;
  ring_weights(by_state ? a.form.flush : Flush::summed, decay_rate(a.parameters.A_log[h.head]), ring.dt, count,
               ring.weight, ring.scale, static_cast<int>(threadIdx.x), static_cast<int>(blockDim.x));
  if (!by_state) shared_dots<T>(ring.B, ring.C, count, tile.state_size(), ring.dots);
  __syncthreads();
  float y;
  if (by_state) {
    y = dot_by_state<T, kState, kKnown != Known::nothing>(a, tile, ring, count, flush, counts);
  } else {
    y = ring.scale[0] * tile.dot(ring.C);
  }
  if (!tile.writes_row()) return;
  const int p = tile.block_row + T::own_row();
  if (!by_state) {
    for (int j = 0; j < count; ++j) y = fmaf(ring.weight[j] * ring.dots[j], ring.x[j * ring.x_stride + p], y);
  }
  y = fmaf(a.parameters.D[h.head], ring.x[position * ring.x_stride + p], y);
  store_element(a.out.y, h.x_offset(a.shape, token, a.out.y_stride) + p, y, a.out.dtype);
}

template <class T, Dtype kState, Known kKnown>
__device__ __forceinline__ void replay_block(const ReplayArguments& a, const BlockHead& h, T& tile, float* memory,
                                             int cursor) {
  const auto L = static_cast<int>(a.form.buffer_len);
  const std::int64_t first_token = h.row * a.block.tokens;
  const SharedRing ring(memory, L, tile.state_size(), a.cut.rows_per_block);
  TokenOperands operands;
  operands.load(a.shape, a.in, h, first_token);
  load_ring(a.shape, a.form, a.ring, h, cursor, ring);

  ThreadCounts counts;
  bool flushed = false;
  int position = cursor;
  put(a, h, operands, position, ring);
  __syncthreads();
  for (std::int64_t t = 0; t < a.block.tokens; ++t) {
    const bool more = kKnown != Known::one_flush && t + 1 < a.block.tokens;
    if (more) operands.load(a.shape, a.in, h, first_token + t + 1);
    replay_token<T, kState, kKnown>(a, h, tile, ring, position, first_token + t, counts);
    const int done = position;
    position = position + 1 == L ? 0 : position + 1;
    flushed = kKnown == Known::one_flush || flushed || position == 0;
    if (!more) break;
    __syncthreads();
    round_entry(a, h, done, ring);
    if (L == 1) __syncthreads();  // the next entry takes the same place
    put(a, h, operands, position, ring);
    __syncthreads();
  }
  // A longer block's entries are appended by append_tail_kernel: other blocks may still read the positions they go to.
  if (a.block.tokens == 1 && !flushed) {
    append_entry(
        a, h, cursor, ring.dt[cursor], [&](int i) { return ring.B[cursor * tile.state_size() + i]; },
        [&](int i) { return ring.x[cursor * ring.x_stride + i]; });
  }
  if (flushed) {
    typename T::template Stored<kState> stored;
    ThreadCounts counted_at_the_flush;
    tile.template pack<kState>(false, false, counted_at_the_flush, stored);  // what is stored already, in value
    tile.template store<kState>(a.state.data, h.state_offset, stored);
    if (a.state.counts != nullptr) add_counts(counts, a.state.counts);
  }
}

}  // namespace replayeval::mamba2::cuda
