// A value head's ring in a block's shared memory, in float32 but holding the values that the caches would, and what can
// be read from it and a tile of the checkpoint: y, the next d, the state. The arithmetic is window-inl.h's.
#pragma once

#include "kernels/delta_rule/token_cuda.cuh"
#include "kernels/entry_products_cuda.cuh"
#include "kernels/ring_cuda.cuh"

namespace replayeval::delta_rule::cuda {

// Layout in dynamic shared memory; values, deltas and v have only the block's rows. kChannels: a decay for each key
// channel, with which a key is weighed element by element; otherwise `weight` is what a key's products are weighed
// with.
template <bool kChannels>
struct SharedWindow {
  float* k;          // [buffer_len, key_dim]
  float* keys;       // [buffer_len, key_dim]: k weighed; kChannels only
  float* log_decay;  // [buffer_len, gate_dim]
  float* q;          // [key_dim]
  float* query;      // [2, key_dim]: what the checkpoint is multiplied with
  float* decay;      // [gate_dim]: what all decays come to
  float* values;     // [buffer_len, rows_per_block]: d or v
  float* deltas;     // [buffer_len, rows_per_block]: an inputs ring's d
  float* v;          // [rows_per_block]: the current token's
  float* beta;       // [buffer_len]
  float* weight;     // [buffer_len]: of a key, or an entry's own decay or factor
  float* by_k;       // [buffer_len + 1]: keys_j · k, and room for the second of two rows
  float* by_q;       // [buffer_len + 1]
  // Where kReadsByProducts or kSumsByProducts:
  char* products;        // kChunkBytes
  VectorParts* vectors;  // the token's k and q
  char* rows;            // [rows_per_block, kRowBytes]: the checkpoint as stored, where kReadsProducts too
  int key_dim, stride;

  static constexpr int kGateWidth = kChannels ? 1 : 0;

  __device__ __forceinline__ SharedWindow(float* memory, int buffer_len, int key_width, int rows_per_block)
      : key_dim(key_width), stride(rows_per_block) {
    float* next = memory;
    const auto take = [&](int floats) {
      float* taken = next;
      next += floats;
      return taken;
    };
    k = take(buffer_len * key_dim);
    keys = take(kGateWidth * buffer_len * key_dim);
    log_decay = take(kChannels ? buffer_len * key_dim : (buffer_len + 3) / 4 * 4);
    q = take(key_dim);
    query = take(2 * key_dim);
    decay = take(kChannels ? key_dim : 4);
    values = take(buffer_len * rows_per_block);
    deltas = take(buffer_len * rows_per_block);
    v = take(rows_per_block);
    beta = take(buffer_len);
    weight = take(buffer_len);
    by_k = take(buffer_len + 1);
    by_q = take(buffer_len + 1);
    products = reinterpret_cast<char*>(memory) + bytes(buffer_len, key_dim, rows_per_block);
    vectors = reinterpret_cast<VectorParts*>(products + kChunkBytes);
    rows = products + kChunkBytes + sizeof(VectorParts);
  }
  static std::size_t product_bytes(std::int64_t rows_per_block) {
    return kChunkBytes + sizeof(VectorParts) + static_cast<std::size_t>(rows_per_block) * kRowBytes;
  }
  // But for the products; a multiple of 16.
  __host__ __device__ static std::size_t bytes(std::int64_t buffer_len, std::int64_t key_dim,
                                               std::int64_t rows_per_block) {
    const std::int64_t gates = kChannels ? buffer_len * key_dim + key_dim : (buffer_len + 3) / 4 * 4 + 4;
    const std::int64_t floats = (1 + kGateWidth) * buffer_len * key_dim + gates + 3 * key_dim +
                                (2 * buffer_len + 1) * rows_per_block + 4 * buffer_len + 2;
    return static_cast<std::size_t>((floats + 3) / 4 * 4) * sizeof(float);
  }

  __device__ __forceinline__ int gate_dim() const { return kChannels ? key_dim : 1; }
  __device__ __forceinline__ float* key(int j) const { return k + j * key_dim; }
  __device__ __forceinline__ float* weighed_key(int j) const { return (kChannels ? keys : k) + j * key_dim; }
  __device__ __forceinline__ float* gate(int j) const { return log_decay + j * gate_dim(); }
  // What a product with weighed_key(j) still has to be multiplied by.
  __device__ __forceinline__ float weight_of(int j) const { return kChannels ? 1.0F : weight[j]; }
};

// Where a slot's entries lie in the caller's memory, in entries.
struct RingOffsets {
  std::int64_t head, key_head;

  __device__ __forceinline__ RingOffsets(const Shape& shape, const ReplayForm& form, const BlockHead& h)
      : head((static_cast<std::int64_t>(h.slot) * static_cast<int>(shape.num_value_heads) + h.head) *
             static_cast<int>(form.buffer_len)),
        key_head((static_cast<std::int64_t>(h.slot) * static_cast<int>(shape.num_key_heads) + h.group) *
                 static_cast<int>(form.buffer_len)) {}
};

// Brings the first `entries` entries to shared memory; values only for the block's rows.
template <bool kChannels>
__device__ __forceinline__ void load_window(const Shape& shape, const ReplayForm& form, const Ring& ring,
                                            const BlockHead& h, int entries, const SharedWindow<kChannels>& to) {
  const RingOffsets at(shape, form, h);
  const int K = to.key_dim;
  const auto V = static_cast<int>(shape.value_dim);
  const int row_groups = h.rows / 4;
  copy_ring4(
      ring.k, form.ring_dtype, entries * K / 4, [&](int i) { return at.key_head * K + 4 * i; },
      [&](int i) { return to.k + 4 * i; });
  copy_ring4(
      ring.values, form.ring_dtype, entries * row_groups,
      [&](int i) { return (at.head + i / row_groups) * V + h.first_row + 4 * (i % row_groups); },
      [&](int i) { return to.values + i / row_groups * to.stride + 4 * (i % row_groups); });
  if constexpr (kChannels) {
    copy_ring4(
        ring.log_decay, Dtype::float32, entries * K / 4, [&](int i) { return at.head * K + 4 * i; },
        [&](int i) { return to.log_decay + 4 * i; });
  }
  for (int j = static_cast<int>(threadIdx.x); j < entries; j += static_cast<int>(blockDim.x)) {
    if constexpr (!kChannels) to.log_decay[j] = ring.log_decay[at.head + j];
    if (form.ring_form == RingForm::inputs) to.beta[j] = ring.beta[at.head + j];
  }
}

// weight or keys, and decay, for the ring's first `count` entries: what exp(g_{j+1} + … + g_count) does to them, each
// sum running from the newest down. The newest weighs 1, and no entries leave the state as it is.
template <bool kChannels>
__device__ __forceinline__ void weigh(const SharedWindow<kChannels>& w, int count) {
  if constexpr (kChannels) {
    for (int c = static_cast<int>(threadIdx.x); c < w.key_dim; c += static_cast<int>(blockDim.x)) {
      float after = 0.0F;
      for (int j = count - 1; j >= 0; --j) {
        const float k = w.key(j)[c];
        w.keys[j * w.key_dim + c] = j + 1 == count ? k : expf(after) * k;
        after = after + w.gate(j)[c];
      }
      w.decay[c] = count == 0 ? 1.0F : expf(after);
    }
  } else {
    // Entry -1 stands for what all decays come to.
    for (int j = static_cast<int>(threadIdx.x) - 1; j < count; j += static_cast<int>(blockDim.x)) {
      float after = 0.0F;
      for (int i = count - 1; i > j; --i) after = after + w.log_decay[i];
      const float weight = j + 1 == count ? 1.0F : expf(after);
      if (j < 0) {
        *w.decay = weight;
      } else {
        w.weight[j] = weight;
      }
    }
  }
}

// query = decay ⊙ x, where the decay differs by channel.
template <bool kChannels>
__device__ __forceinline__ void weigh_query(const SharedWindow<kChannels>& w, const float* x, float* query) {
  if constexpr (kChannels) {
    for (int c = static_cast<int>(threadIdx.x); c < w.key_dim; c += static_cast<int>(blockDim.x)) {
      query[c] = w.decay[c] * x[c];
    }
  }
}

// S_0 (decay ⊙ x) for this warp's rows.
template <bool kChannels, class T>
__device__ __forceinline__ float dot_checkpoint(const SharedWindow<kChannels>& w, const T& tile, const float* x,
                                                const float* query) {
  if constexpr (kChannels) {
    return tile.dot(query);
  } else {
    return *w.decay * tile.dot(x);
  }
}

// The tile becomes S_0 diag(decay) + sum_{j < count} d_j keys_j^T.
template <bool kChannels, class T>
__device__ __forceinline__ void sum_entries(const SharedWindow<kChannels>& w, T& tile, const float* d, int count) {
  decay_tile<kChannels>(tile, w.decay);
  for (int j = 0; j < count; ++j) {
    tile.add_outer(w.weight_of(j), d + j * w.stride + tile.block_row, w.weighed_key(j));
  }
}

// Whether the products of k and q with the keys of a ring in bfloat16, and with the checkpoint where kReadsProducts
// too, are those of vector_products_cuda.cuh.
template <bool kChannels, RingForm kForm, class T>
inline constexpr bool kReadsByProducts = !kChannels && kForm == RingForm::deltas && std::is_same_v<T, ProductTile>;

// The checkpoint's rows of this warp as stored, for read_rows().
template <bool kChannels, class T>
__device__ __forceinline__ void keep_rows(const SharedWindow<kChannels>& w, const T& tile,
                                          const typename T::template Stored<Dtype::bfloat16>& stored) {
  __syncwarp();
#pragma unroll
  for (int r = 0; r < T::kRows; ++r) {
    reinterpret_cast<uint2*>(w.rows + (tile.block_row + r) * kRowBytes)[threadIdx.x % 32] = stored[r][0].bits;
  }
  __syncwarp();
}

// S_0 k and S_0 q of the row that dot() would leave in this lane.
template <bool kChannels, class T>
__device__ __forceinline__ void read_rows(const SharedWindow<kChannels>& w, const T& tile, float& from_k,
                                          float& from_q) {
  static_assert(T::kRows == 8 && T::kWarpRows == 8, "lanes 4 r … 4 r + 3 have row r");
  RowShare first;
  RowShare last;
  first.load(w.rows + (tile.block_row + RowShare::row()) * kRowBytes);
  last.fill_zero();
  float parts[4];
  multiply_rows(first, last, *w.vectors, parts);
  from_k = add_parts(parts[0]);
  from_q = add_parts(parts[1]);
}

// The ring's keys, `count` of them in bfloat16, times k and q; a warp has a chunk.
template <bool kChannels>
__device__ __forceinline__ void read_keys(const SharedWindow<kChannels>& w, int count) {
  const auto warps = static_cast<int>(blockDim.x) / 32;
  const int warp = warps - 1 - static_cast<int>(threadIdx.x) / 32;  // the first has a product of its own
  for (int first = warp * kChunkEntries; first < count; first += warps * kChunkEntries) {
    multiply_entries(first, count, *w.vectors, w.by_k, w.by_q, [&](int j) -> const float* { return w.key(j); });
  }
}

// Whether a flush sums a ring's entries by entry_products_cuda.cuh: keys as the ring stores them, of a deltas ring.
template <bool kChannels, RingForm kForm, class T, Dtype kState>
inline constexpr bool kSumsByProducts = !kChannels && kForm == RingForm::deltas && kTakesProducts<T, kState>;

// sum_entries() of a deltas ring for a flush; by all threads of the block.
template <bool kChannels, RingForm kForm, Dtype kState, class T>
__device__ __forceinline__ void sum_stored_entries(const SharedWindow<kChannels>& w, Dtype ring, T& tile,
                                                   const float* d, int count) {
  if constexpr (kSumsByProducts<kChannels, kForm, T, kState>) {
    if (ring == Dtype::bfloat16 && count > 0) {
      add_entries_together(tile, *w.decay, w.k, count, w.products,
                           [&](int j, int row) { return w.weight[j] * d[j * w.stride + tile.block_row + row]; });
      return;
    }
  }
  sum_entries(w, tile, d, count);
}

// deltas = d of an inputs ring's first `count` entries, each from those before it. Begins and ends in step.
template <bool kChannels, class T>
__device__ __forceinline__ void find_deltas(const SharedWindow<kChannels>& w, const T& tile, int count) {
  for (int j = 0; j < count; ++j) {
    weigh(w, j + 1);
    __syncthreads();
    weigh_query(w, w.key(j), w.query);
    if (j > 0) shared_dots<T>(w.weighed_key(0), w.key(j), j, w.key_dim, w.by_k);
    __syncthreads();
    float held = dot_checkpoint(w, tile, w.key(j), w.query);
    if (tile.writes_row()) {
      const int p = tile.block_row + T::own_row();
      for (int i = 0; i < j; ++i) held = fmaf(w.weight_of(i) * w.by_k[i], w.deltas[i * w.stride + p], held);
      w.deltas[j * w.stride + p] = w.beta[j] * (w.values[j * w.stride + p] - held);
    }
    __syncthreads();
  }
}

// exp(g_j) of every entry, for run_sequence().
template <bool kChannels>
__device__ __forceinline__ void decay_each(const SharedWindow<kChannels>& w, int count) {
  float* to = kChannels ? w.keys : w.weight;
  for (int i = static_cast<int>(threadIdx.x); i < count * w.gate_dim(); i += static_cast<int>(blockDim.x)) {
    to[i] = expf(w.log_decay[i]);
  }
}

// The tile becomes the state after an inputs ring's first `count` entries, one after the other.
template <bool kChannels, class T>
__device__ __forceinline__ void run_sequence(const SharedWindow<kChannels>& w, T& tile, int count) {
  const float* decay = kChannels ? w.keys : w.weight;
  for (int j = 0; j < count; ++j) {
    decay_tile<kChannels>(tile, decay + j * w.gate_dim());
    update_tile(tile, w.key(j), w.values + j * w.stride, w.beta[j]);
  }
}

// Carries q back through an inputs ring whose entry `count` is its token: query = u_0 and weight_t = beta_t c_t. By the
// first warp; a lane has four columns and four more 128 further on.
template <bool kChannels>
__device__ __forceinline__ void carry_query_back(const SharedWindow<kChannels>& w, int count) {
  if (threadIdx.x >= 32) return;
  constexpr int kVectors = 2;
  const auto column = [](int v) { return static_cast<int>(threadIdx.x) * 4 + 128 * v; };
  float u[kVectors][4];
#pragma unroll
  for (int v = 0; v < kVectors; ++v) {
    if (column(v) < w.key_dim) load4<Dtype::float32>(w.q, column(v), u[v]);
  }
  for (int t = count - 1; t >= 0; --t) {
    float k[kVectors][4];
    float g[kVectors][4];
    float sum = 0.0F;
#pragma unroll
    for (int v = 0; v < kVectors; ++v) {
      if (column(v) >= w.key_dim) continue;
      load4<Dtype::float32>(w.key(t), column(v), k[v]);
      if constexpr (kChannels) load4<Dtype::float32>(w.gate(t), column(v), g[v]);
#pragma unroll
      for (int i = 0; i < 4; ++i) sum = fmaf(k[v][i], u[v][i], sum);
    }
#pragma unroll
    for (int distance = 16; distance >= 1; distance /= 2) {
      sum = sum + __shfl_xor_sync(0xFFFFFFFFU, sum, distance);
    }
    const float factor = w.beta[t] * sum;
    const float shared_decay = kChannels ? 1.0F : expf(*w.gate(t));
#pragma unroll
    for (int v = 0; v < kVectors; ++v) {
      if (column(v) >= w.key_dim) continue;
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const float alpha = kChannels ? expf(g[v][i]) : shared_decay;
        u[v][i] = alpha * fmaf(-factor, k[v][i], u[v][i]);
      }
    }
    if (threadIdx.x == 0) w.weight[t] = factor;
  }
#pragma unroll
  for (int v = 0; v < kVectors; ++v) {
    if (column(v) >= w.key_dim) continue;
    *reinterpret_cast<float4*>(w.query + column(v)) = make_float4(u[v][0], u[v][1], u[v][2], u[v][3]);
  }
}

}  // namespace replayeval::delta_rule::cuda
