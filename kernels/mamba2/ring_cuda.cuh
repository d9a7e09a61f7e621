// A head's ring in a block's shared memory, holding the values that the caches would.
#pragma once

#include "kernels/mamba2/launch_cuda.cuh"

namespace replayeval::mamba2::cuda {

// Layout in dynamic shared memory; x has only the block's rows.
struct SharedRing {
  float* B;       // [buffer_len, state_size]
  float* C;       // [state_size]
  float* x;       // [buffer_len, rows]
  float* dt;      // [buffer_len]
  float* weight;  // [buffer_len]
  float* scale;   // [buffer_len]
  float* dots;    // [buffer_len]: B_j · C

  __device__ __forceinline__ SharedRing(float* memory, int buffer_len, int state_size, int rows) {
    B = memory;
    C = B + buffer_len * state_size;
    x = C + state_size;
    dt = x + buffer_len * rows;
    weight = dt + buffer_len;
    scale = weight + buffer_len;
    dots = scale + buffer_len;
  }
  static std::size_t bytes(std::int64_t buffer_len, std::int64_t state_size, std::int64_t rows) {
    return static_cast<std::size_t>(buffer_len * (state_size + rows + 4) + state_size) * sizeof(float);
  }
};

__device__ __forceinline__ void load_ring4(const void* ring, std::int64_t index, Dtype dtype, float* to) {
  float v[4];
  if (dtype == Dtype::float32) {
    load4<Dtype::float32>(ring, index, v);
  } else {
    load4<Dtype::bfloat16>(ring, index, v);
  }
  *reinterpret_cast<float4*>(to) = make_float4(v[0], v[1], v[2], v[3]);
}

// Brings the first `entries` entries to shared memory; x only for the block's rows.
__device__ __forceinline__ void load_ring(const Shape& shape, const ReplayForm& form, const Ring& ring,
                                          const BlockHead& h, int entries, int first_row, int rows,
                                          const SharedRing& to) {
  const auto L = static_cast<int>(form.buffer_len);
  const auto N = static_cast<int>(shape.state_size);
  const auto P = static_cast<int>(shape.head_dim);
  const std::int64_t head_ring = (static_cast<std::int64_t>(h.slot) * shape.num_heads + h.head) * L;
  const std::int64_t group_ring = (static_cast<std::int64_t>(h.slot) * shape.num_groups + h.group) * L;
  const int present = min(rows, P - first_row);
  for (int i = threadIdx.x * 4; i < entries * N; i += blockDim.x * 4) {
    load_ring4(ring.B, group_ring * N + i, form.ring_dtype, to.B + i);
  }
  for (int i = threadIdx.x * 4; i < entries * present; i += blockDim.x * 4) {
    const int j = i / present;
    const int p = i % present;
    load_ring4(ring.x, (head_ring + j) * P + first_row + p, form.ring_dtype, to.x + j * rows + p);
  }
  for (int j = threadIdx.x; j < entries; j += blockDim.x) to.dt[j] = ring.dt[head_ring + j];
}

// The tile becomes the state after the ring's first `count` entries.
template <class T>
__device__ __forceinline__ void apply_ring(T& tile, Flush flush, const SharedRing& ring, int count, int rows,
                                           int first_row) {
  const float* x = ring.x + (tile.first_row - first_row);
  if (flush == Flush::sequential) {
    for (int j = 0; j < count; ++j) {
      tile.multiply(ring.scale[j]);
      tile.add_outer(ring.weight[j], x + j * rows, ring.B + j * tile.state_size);
    }
  } else {
    tile.multiply(ring.scale[0]);
    for (int j = 0; j < count; ++j) tile.add_outer(ring.weight[j], x + j * rows, ring.B + j * tile.state_size);
  }
}

// Lets a kernel use more than the 48 KiB of shared memory that it may without asking.
template <class Kernel>
void allow_shared(Kernel kernel, std::size_t bytes) {
  constexpr std::size_t kWithoutAsking = 48 * 1024;
  if (bytes <= kWithoutAsking) return;
  expect_success(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes)),
                 "asking for shared memory");
}

}  // namespace replayeval::mamba2::cuda
