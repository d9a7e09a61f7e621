// One output_only step between flushes, the case that speed hangs on: the checkpoint is read and nothing but the new ring
// entry is written. Every load is under way before the first is waited for; B never passes through shared memory. The
// bits are those of replay_block_cuda.cuh.
#pragma once

#include "kernels/mamba2/replay_block_cuda.cuh"

#include <cuda_pipeline_primitives.h>

namespace replayeval::mamba2::cuda {

struct SharedStep {
  float dt[64], weight[64];
  float dots[66];
  float scale;
};

// Starts copying the ring's x, packed as stored, to shared memory: [entries, rows_per_block].
__device__ __forceinline__ void start_copying_x(const ReplayArguments& a, const BlockHead& h, const RingOffsets& at,
                                                int entries, void* to) {
  const int size = a.form.ring_dtype == Dtype::float32 ? 4 : 2;
  const int row_groups = h.rows / 4;
  const auto P = static_cast<int>(a.shape.head_dim);
  for (int i = static_cast<int>(threadIdx.x); i < entries * row_groups; i += static_cast<int>(blockDim.x)) {
    const int j = i / row_groups;
    const int p = i % row_groups * 4;
    const char* from = static_cast<const char*>(a.ring.x) + ((at.head + j) * P + h.first_row + p) * size;
    char* target = static_cast<char*>(to) + (j * a.cut.rows_per_block + p) * size;
    if (size == 4) {
      __pipeline_memcpy_async(target, from, 16);
    } else {
      __pipeline_memcpy_async(target, from, 8);
    }
  }
  __pipeline_commit();
}

// By the last warp: the time steps of the ring and of the token, and what the entries weigh.
__device__ __forceinline__ void step_weights(const ReplayArguments& a, const BlockHead& h, const RingOffsets& at,
                                             std::int64_t token, int cursor, SharedStep& to) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const float rate = decay_rate(a.parameters.A_log[h.head]);
  const float raw = load_element(a.in.dt, token * a.in.dt_stride + h.head, a.in.dtype);
  for (int j = lane; j < cursor; j += 32) to.dt[j] = a.ring.dt[at.head + j];
  to.dt[cursor] = time_step(raw, a.parameters.dt_bias[h.head], a.parameters.dt_min, a.parameters.dt_max);
  __syncwarp();
  ring_weights(Flush::summed, rate, to.dt, cursor + 1, to.weight, &to.scale, lane, 32);
}

// B_j · C of the ring's entries and of the token, which enters unrounded; two a warp.
template <class T>
__device__ __forceinline__ void step_dots(const ReplayArguments& a, const BlockHead& h, const RingOffsets& at,
                                          std::int64_t token, int cursor, const float (&C)[T::kVectors][4],
                                          SharedStep& to) {
  const auto N = static_cast<int>(a.shape.state_size);
  const auto warps = static_cast<int>(blockDim.x) / 32;
  for (int j = static_cast<int>(threadIdx.x) / 32 * 2; j <= cursor; j += 2 * warps) {
    const float dot = dot_two_rows<T>(C, N, [&](int row, int v, float(&B)[4]) {
      if (j + row < cursor) {
        load_ring4(a.ring.B, (at.group + j + row) * N + T::column_of(v), a.form.ring_dtype, B);
      } else {  // the token itself; a row past it is not used
        load4_any(a.in.B, token * a.in.B_stride + h.group * N + T::column_of(v), a.in.dtype, B);
      }
    });
    if (threadIdx.x % 16 == 0) to.dots[j + static_cast<int>(threadIdx.x) % 32 / 16] = dot;
  }
}

template <class T, Dtype kState>
__device__ __forceinline__ void replay_step(const ReplayArguments& a, const BlockHead& h, T& tile,
                                            const typename T::template Loaded<kState>& loaded, float* memory,
                                            int cursor) {
  __shared__ SharedStep shared;
  const std::int64_t token = h.row;
  const auto N = static_cast<int>(a.shape.state_size);
  const RingOffsets at(a.shape, static_cast<int>(a.form.buffer_len), h);
  start_copying_x(a, h, at, cursor, memory);
  float C[T::kVectors][4];
#pragma unroll
  for (int v = 0; v < T::kVectors; ++v) {
    if (tile.holds(v)) load4_any(a.in.C, token * a.in.C_stride + h.group * N + T::column_of(v), a.in.dtype, C[v]);
  }
  const int p = tile.block_row + T::own_row();
  const std::int64_t x_start = h.x_offset(a.shape, token, a.in.x_stride);
  const float x = tile.active ? load_element(a.in.x, x_start + p, a.in.dtype) : 0.0F;
  const float D = a.parameters.D[h.head];

  if (threadIdx.x + 32 >= blockDim.x) step_weights(a, h, at, token, cursor, shared);
  step_dots<T>(a, h, at, token, cursor, C, shared);
  tile.template unpack<kState>(loaded);
  const float sum = tile.dot(C);
  __pipeline_wait_prior(0);
  __syncthreads();

  if (tile.writes_row()) {
    float y = shared.scale * sum;
#pragma unroll 4
    for (int j = 0; j < cursor; ++j) {
      const float entry = load_element(memory, j * a.cut.rows_per_block + p, a.form.ring_dtype);
      y = fmaf(shared.weight[j] * shared.dots[j], entry, y);
    }
    y = fmaf(shared.weight[cursor] * shared.dots[cursor], x, y);
    y = fmaf(D, x, y);
    store_element(a.out.y, h.x_offset(a.shape, token, a.out.y_stride) + p, y, a.out.dtype);
  }
  append_entry(
      a, h, cursor, shared.dt[cursor],
      [&](int i) { return load_element(a.in.B, token * a.in.B_stride + h.group * N + i, a.in.dtype); },
      [&](int i) { return load_element(a.in.x, x_start + i, a.in.dtype); });
}

}  // namespace replayeval::mamba2::cuda
