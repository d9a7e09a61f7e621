// A head's ring in a block's shared memory, in float32 but holding the values that the caches would.
#pragma once

#include "kernels/entry_products_cuda.cuh"
#include "kernels/mamba2/launch_cuda.cuh"
#include "kernels/ring_cuda.cuh"

namespace replayeval::mamba2::cuda {

// Layout in dynamic shared memory; x has only the block's rows.
struct SharedRing {
  float* B;        // [buffer_len, state_size]
  float* C;        // [state_size]
  float* x;        // [buffer_len, rows_per_block]
  float* dt;       // [buffer_len]
  float* weight;   // [buffer_len]
  float* scale;    // [buffer_len]
  float* dots;     // [buffer_len + 1]: B_j · C, and room for the second of two rows
  char* products;  // kChunkBytes, where takes_products()
  int x_stride;

  __device__ __forceinline__ SharedRing(float* memory, int buffer_len, int state_size, int rows_per_block) {
    B = memory;
    C = B + buffer_len * state_size;
    x = C + state_size;
    dt = x + buffer_len * rows_per_block;
    weight = dt + buffer_len;
    scale = weight + buffer_len;
    dots = scale + buffer_len;
    products = reinterpret_cast<char*>(memory) + bytes(buffer_len, state_size, rows_per_block);
    x_stride = rows_per_block;
  }
  // But for the products; a multiple of 16.
  __host__ __device__ static std::size_t bytes(std::int64_t buffer_len, std::int64_t state_size,
                                               std::int64_t rows_per_block) {
    const std::int64_t floats = buffer_len * (state_size + rows_per_block + 4) + state_size + 1;
    return static_cast<std::size_t>((floats + 3) / 4 * 4) * sizeof(float);
  }
};

// Where a slot's entries lie in the caller's memory, in entries.
struct RingOffsets {
  std::int64_t head, group;

  __device__ __forceinline__ RingOffsets(const Shape& shape, int buffer_len, const BlockHead& h)
      : head((static_cast<std::int64_t>(h.slot) * static_cast<int>(shape.num_heads) + h.head) * buffer_len),
        group((static_cast<std::int64_t>(h.slot) * static_cast<int>(shape.num_groups) + h.group) * buffer_len) {}
};

// Brings the first `entries` entries to shared memory; x only for the block's rows.
__device__ __forceinline__ void load_ring(const Shape& shape, const ReplayForm& form, const Ring& ring,
                                          const BlockHead& h, int entries, const SharedRing& to) {
  const RingOffsets at(shape, static_cast<int>(form.buffer_len), h);
  const auto N = static_cast<int>(shape.state_size);
  const auto P = static_cast<int>(shape.head_dim);
  const int row_groups = h.rows / 4;
  copy_ring4(
      ring.B, form.ring_dtype, entries * N / 4, [&](int i) { return at.group * N + 4 * i; },
      [&](int i) { return to.B + 4 * i; });
  copy_ring4(
      ring.x, form.ring_dtype, entries * row_groups,
      [&](int i) { return (at.head + i / row_groups) * P + h.first_row + 4 * (i % row_groups); },
      [&](int i) { return to.x + i / row_groups * to.x_stride + 4 * (i % row_groups); });
  for (int j = static_cast<int>(threadIdx.x); j < entries; j += static_cast<int>(blockDim.x)) {
    to.dt[j] = ring.dt[at.head + j];
  }
}

// The tile becomes the state after the ring's first `count` entries, all of them as stored.
template <class T>
__device__ __forceinline__ void apply_ring(T& tile, Flush flush, const SharedRing& ring, int count) {
  const float* x = ring.x + tile.block_row;
  if (flush == Flush::sequential) {
    for (int j = 0; j < count; ++j) {
      tile.multiply(ring.scale[j]);
      tile.add_outer(ring.weight[j], x + j * ring.x_stride, ring.B + j * tile.state_size());
    }
  } else {
    tile.multiply(ring.scale[0]);
    for (int j = 0; j < count; ++j) {
      tile.add_outer(ring.weight[j], x + j * ring.x_stride, ring.B + j * tile.state_size());
    }
  }
}

// The same where the newest entry is the token itself, not rounded yet: what a flush does. By all threads of the block.
template <class T, Dtype kState>
__device__ __forceinline__ void apply_ring_and_token(T& tile, const ReplayForm& form, const SharedRing& ring,
                                                     int count) {
  if constexpr (kTakesProducts<T, kState>) {
    if (form.flush == Flush::summed && form.ring_dtype == Dtype::bfloat16 && count > 1) {
      const float* x = ring.x + tile.block_row;
      const int own = count - 1;
      add_entries_together(tile, ring.scale[0], ring.B, own, ring.products,
                           [&](int j, int row) { return ring.weight[j] * x[j * ring.x_stride + row]; });
      tile.add_outer(ring.weight[own], x + own * ring.x_stride, ring.B + own * tile.state_size());
      return;
    }
  }
  apply_ring(tile, form.flush, ring, count);
}

}  // namespace replayeval::mamba2::cuda
