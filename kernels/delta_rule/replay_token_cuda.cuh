// One token of the replay executor on the GPU, from its operands in shared memory to its y and, in a deltas ring, its
// d.
#pragma once

#include "kernels/delta_rule/window_cuda.cuh"

namespace replayeval::delta_rule::cuda {

struct ReplayArguments {
  Shape shape;
  ReplayForm form;
  Block block;
  Inputs in;
  Parameters parameters;
  State state;
  Ring ring;
  Output out;
  HeadCut cut;
};

// By the output route, in a deltas ring: the tile stays the checkpoint. d is left in the window.
template <Dtype kState, bool kChannels, class T>
__device__ __forceinline__ float read_by_deltas(const SharedWindow<kChannels>& w, Dtype ring, const T& tile,
                                                int count) {
  constexpr bool kProducts = kReadsByProducts<kChannels, RingForm::deltas, T>;
  const int own = count - 1;
  const float* k = w.key(own);
  weigh(w, count);
  if constexpr (kChannels) {
    __syncthreads();
    weigh_query(w, k, w.query);
    weigh_query(w, w.q, w.query + w.key_dim);
  }
  const bool keys_by_products = kProducts && ring == Dtype::bfloat16;
  if (keys_by_products) {
    read_keys(w, own);
    shared_dots<T>(k, w.q, 1, w.key_dim, w.by_q + own);
  } else {
    if (own > 0) shared_dots<T>(w.weighed_key(0), k, own, w.key_dim, w.by_k);
    shared_dots<T>(w.weighed_key(0), w.q, count, w.key_dim, w.by_q);
  }
  __syncthreads();
  float held;
  float y;
  if constexpr (kProducts && kReadsProducts<T, kState>) {
    read_rows(w, tile, held, y);
    held = *w.decay * held;
    y = *w.decay * y;
  } else {
    held = dot_checkpoint(w, tile, k, w.query);
    y = dot_checkpoint(w, tile, w.q, w.query + w.key_dim);
  }
  if (!tile.writes_row()) return y;
  const int p = tile.block_row + T::own_row();
  for (int j = 0; j < own; ++j) {
    const float d = w.values[j * w.stride + p];
    held = fmaf(w.weight_of(j) * w.by_k[j], d, held);
    y = fmaf(w.weight_of(j) * w.by_q[j], d, y);
  }
  const float d = w.beta[own] * (w.v[p] - held);
  w.values[own * w.stride + p] = d;
  return fmaf(w.by_q[own], d, y);
}

// By the output route, in an inputs ring.
template <bool kChannels, class T>
__device__ __forceinline__ float read_by_adjoint(const SharedWindow<kChannels>& w, const T& tile, int count) {
  carry_query_back(w, count);
  __syncthreads();
  float y = tile.dot(w.query);
  if (!tile.writes_row()) return y;
  const int p = tile.block_row + T::own_row();
  for (int t = 0; t < count; ++t) y = fmaf(w.weight[t], w.values[t * w.stride + p], y);
  return y;
}

// By the state route: the tile becomes S_w, unrounded. In a deltas ring d is left in the window.
template <bool kChannels, RingForm kForm, Dtype kState, class T>
__device__ __forceinline__ float build_state(const SharedWindow<kChannels>& w, const ReplayForm& form, T& tile,
                                             int count) {
  const int own = count - 1;
  if (kForm == RingForm::inputs && form.flush == Flush::sequential) {
    decay_each(w, count);
    __syncthreads();
    run_sequence(w, tile, count);
    return tile.dot(w.q);
  }
  if constexpr (kForm == RingForm::inputs) find_deltas(w, tile, own);
  weigh(w, count);
  __syncthreads();
  sum_stored_entries<kChannels, kForm, kState>(w, form.ring_dtype, tile,
                                               kForm == RingForm::inputs ? w.deltas : w.values, own);
  const float* v = kForm == RingForm::inputs ? w.values + own * w.stride : w.v;
  const float d = update_tile(tile, w.key(own), v, w.beta[own]);
  if (kForm == RingForm::deltas && tile.writes_row()) w.values[own * w.stride + tile.block_row + T::own_row()] = d;
  return tile.dot(w.q);
}

template <bool kChannels, RingForm kForm>
__device__ __forceinline__ TokenTarget target_of(const SharedWindow<kChannels>& w, int position) {
  float* v = kForm == RingForm::inputs ? w.values + position * w.stride : w.v;
  const bool whole = !kChannels && kForm == RingForm::deltas && w.key_dim == ProductTile::kMaxStateSize;
  return {w.q, w.key(position), v, w.gate(position), nullptr, w.beta + position, whole ? w.vectors : nullptr};
}

// From here on the entry is what the ring's memory would give back.
template <bool kChannels>
__device__ __forceinline__ void round_entry(const ReplayArguments& a, const BlockHead& h, int position,
                                            const SharedWindow<kChannels>& w) {
  if (a.form.ring_dtype == Dtype::float32) return;
  const auto threads = static_cast<int>(blockDim.x);
  float* k = w.key(position);
  float* value = w.values + position * w.stride;
  for (int i = static_cast<int>(threadIdx.x); i < w.key_dim; i += threads) k[i] = rounded<Dtype::bfloat16>(k[i], false);
  for (int i = static_cast<int>(threadIdx.x); i < h.rows; i += threads) {
    value[i] = rounded<Dtype::bfloat16>(value[i], false);
  }
}

// The block's rows of an entry's values, from shared memory to the ring's memory.
template <bool kChannels>
__device__ __forceinline__ void append_values(const ReplayArguments& a, const BlockHead& h, int position,
                                              const SharedWindow<kChannels>& w) {
  const RingOffsets at(a.shape, a.form, h);
  const std::int64_t first = (at.head + position) * static_cast<int>(a.shape.value_dim) + h.first_row;
  for (int i = static_cast<int>(threadIdx.x); i < h.rows; i += static_cast<int>(blockDim.x)) {
    store_element(a.ring.values, first + i, w.values[position * w.stride + i], a.form.ring_dtype);
  }
}

// The rest of the entry, by one of the blocks that share it.
template <bool kChannels, RingForm kForm>
__device__ __forceinline__ void append_shared(const ReplayArguments& a, const BlockHead& h, int position,
                                              const TokenTarget& token, int key_dim) {
  if (h.tile != 0) return;
  const RingOffsets at(a.shape, a.form, h);
  const auto threads = static_cast<int>(blockDim.x);
  const int gates = kChannels ? key_dim : 1;
  for (int i = static_cast<int>(threadIdx.x); i < gates; i += threads) {
    a.ring.log_decay[(at.head + position) * gates + i] = token.log_decay[i];
  }
  if (kForm == RingForm::inputs && threadIdx.x == 0) a.ring.beta[at.head + position] = *token.beta;
  if (!h.leads_group) return;
  for (int i = static_cast<int>(threadIdx.x); i < key_dim; i += threads) {
    store_element(a.ring.k, (at.key_head + position) * key_dim + i, token.k[i], a.form.ring_dtype);
  }
}

}  // namespace replayeval::delta_rule::cuda
