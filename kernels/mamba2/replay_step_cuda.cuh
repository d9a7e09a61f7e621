// One output_only step between flushes, the case that speed hangs on: the checkpoint is read and nothing but the new
// ring entry is written. A block takes kHeads heads of a group, which share B, C and their products. Loads are under
// way before the first is waited for, and B never passes through shared memory. The bits are those of
// replay_block_cuda.cuh.
#pragma once

#include "kernels/mamba2/replay_block_cuda.cuh"

#include <cuda_pipeline_primitives.h>

namespace replayeval::mamba2::cuda {

template <int kHeads>
struct SharedStep {
  float dt[kHeads][64], weight[kHeads][64], scale[kHeads];
  float dots[66];
};

// Bytes of dynamic shared memory: the ring's x as stored, [kHeads, buffer_len, rows_per_block].
inline std::size_t step_bytes(const ReplayForm& form, int heads, int rows_per_block) {
  return static_cast<std::size_t>(heads * form.buffer_len * rows_per_block) * dtype_size(form.ring_dtype);
}

// Starts copying the ring's x to shared memory, four elements at a time.
template <int kHeads>
__device__ __forceinline__ void start_copying_x(const ReplayArguments& a, const BlockHead& h, const RingOffsets& at,
                                                int entries, char* to) {
  constexpr int kGroups = kMaxWarps * 8 / 4;  // of four rows, at most
  const int size = a.form.ring_dtype == Dtype::float32 ? 4 : 2;
  const auto P = static_cast<int>(a.shape.head_dim);
  const auto L = static_cast<int>(a.form.buffer_len);
  const int p = static_cast<int>(threadIdx.x % kGroups) * 4;
  const char* from = static_cast<const char*>(a.ring.x) + (at.head * P + h.first_row + p) * size;
  for (int j = static_cast<int>(threadIdx.x) / kGroups; p < h.rows && j < entries;
       j += static_cast<int>(blockDim.x) / kGroups) {
#pragma unroll
    for (int k = 0; k < kHeads; ++k) {
      const int entry = k * L + j;
      char* target = to + (entry * a.cut.rows_per_block + p) * size;
      if (size == 4) {
        __pipeline_memcpy_async(target, from + entry * P * size, 16);
      } else {
        __pipeline_memcpy_async(target, from + entry * P * size, 8);
      }
    }
  }
  __pipeline_commit();
}

// A warp a head: the time steps of the ring and of the token, and what the entries weigh.
template <int kHeads>
__device__ __forceinline__ void step_weights(const ReplayArguments& a, const BlockHead& h, const RingOffsets& at,
                                             std::int64_t token, int cursor, SharedStep<kHeads>& to) {
  const int lane = static_cast<int>(threadIdx.x % 32);
  const int k = static_cast<int>((blockDim.x - 1 - threadIdx.x) / 32);  // the last warps have less to do otherwise
  if (k >= kHeads) return;
  const int head = h.head + k;
  const float rate = decay_rate(a.parameters.A_log[head]);
  const float raw = load_element(a.in.dt, token * a.in.dt_stride + head, a.in.dtype);
  const float* ring = a.ring.dt + at.head + k * static_cast<int>(a.form.buffer_len);
  for (int j = lane; j < cursor; j += 32) to.dt[k][j] = ring[j];
  to.dt[k][cursor] = time_step(raw, a.parameters.dt_bias[head], a.parameters.dt_min, a.parameters.dt_max);
  __syncwarp();
  ring_weights(Flush::summed, rate, to.dt[k], cursor + 1, to.weight[k], &to.scale[k], lane, 32);
}

// B_j · C of the ring's entries and of the token, which enters unrounded; two a warp.
template <class T, int kHeads>
__device__ __forceinline__ void step_dots(const ReplayArguments& a, const BlockHead& h, const RingOffsets& at,
                                          std::int64_t token, int cursor, int N, const float (&C)[T::kVectors][4],
                                          SharedStep<kHeads>& to) {
  const auto warps = static_cast<int>(blockDim.x / 32);
  for (int j = static_cast<int>(threadIdx.x / 32) * 2; j <= cursor; j += 2 * warps) {
    const float dot = dot_two_rows<T>(C, N, [&](int row, int v, float(&B)[4]) {
      if (j + row < cursor) {
        load_ring4(a.ring.B, (at.group + j + row) * N + T::column_of(v), a.form.ring_dtype, B);
      } else {  // the token itself; a row past it is not used
        load4_any(a.in.B, token * a.in.B_stride + h.group * N + T::column_of(v), a.in.dtype, B);
      }
    });
    if (threadIdx.x % 16 == 0) to.dots[j + static_cast<int>(threadIdx.x % 32) / 16] = dot;
  }
}

// y of row p of the block's head k, from S_0 C.
template <int kHeads>
__device__ __forceinline__ float step_y(const ReplayArguments& a, const SharedStep<kHeads>& shared, const char* ring_x,
                                        int k, int p, int cursor, float sum, float x, float D) {
  float y = shared.scale[k] * sum;
  const int stride = a.cut.rows_per_block;
  const int first = k * static_cast<int>(a.form.buffer_len) * stride + p;
  if (a.form.ring_dtype == Dtype::float32) {
#pragma unroll 4
    for (int j = 0; j < cursor; ++j) {
      const float entry = reinterpret_cast<const float*>(ring_x)[first + j * stride];
      y = fmaf(shared.weight[k][j] * shared.dots[j], entry, y);
    }
  } else {
#pragma unroll 4
    for (int j = 0; j < cursor; ++j) {
      const float entry = decode_bfloat16(reinterpret_cast<const std::uint16_t*>(ring_x)[first + j * stride]);
      y = fmaf(shared.weight[k][j] * shared.dots[j], entry, y);
    }
  }
  y = fmaf(shared.weight[k][cursor] * shared.dots[cursor], x, y);
  return fmaf(D, x, y);
}

template <int kHeads>
__device__ __forceinline__ void append_step(const ReplayArguments& a, const BlockHead& h, std::int64_t token,
                                            int cursor, const SharedStep<kHeads>& shared) {
  const std::int64_t x_start = h.x_offset(a.shape, token, a.in.x_stride);
#pragma unroll 1
  for (int k = 0; k < kHeads; ++k) {
    append_entry(
        a, h.at(a.shape, k), cursor, shared.dt[k][cursor],
        [&](int i) {
          return load_element(a.in.B, token * a.in.B_stride + h.group * a.shape.state_size + i, a.in.dtype);
        },
        [&](int i) { return load_element(a.in.x, x_start + k * a.shape.head_dim + i, a.in.dtype); });
  }
}

template <class T, Dtype kState, int kHeads>
__device__ __forceinline__ void replay_step(const ReplayArguments& a, const BlockHead& h, T& tile,
                                            typename T::template Stored<kState>& stored, char* memory, int cursor) {
  __shared__ SharedStep<kHeads> shared;
  const std::int64_t token = h.row;
  const int N = tile.state_size();
  const RingOffsets at(a.shape, static_cast<int>(a.form.buffer_len), h);
  start_copying_x<kHeads>(a, h, at, cursor, memory);
  float C[T::kVectors][4];
#pragma unroll
  for (int v = 0; v < T::kVectors; ++v) {
    if (tile.holds(v)) load4_any(a.in.C, token * a.in.C_stride + h.group * N + T::column_of(v), a.in.dtype, C[v]);
  }
  // The lanes that get a row's sum together share out the heads: this lane's row of its head.
  constexpr int kRowLanes = T::kLanes / T::kRows;
  static_assert(kHeads <= kRowLanes);
  const int own_head = static_cast<int>(threadIdx.x % kRowLanes);
  const bool writes = tile.active && own_head < kHeads;
  const int p = tile.block_row + T::own_row();
  const std::int64_t from_x = h.x_offset(a.shape, token, a.in.x_stride) + own_head * static_cast<int>(a.shape.head_dim);
  const float x = writes ? load_element(a.in.x, from_x + p, a.in.dtype) : 0.0F;
  const float D = writes ? a.parameters.D[h.head + own_head] : 0.0F;

  const std::int64_t state_elements = static_cast<std::int64_t>(a.shape.head_dim) * N;
  std::int64_t next_state = h.state_offset + state_elements;

  step_weights<kHeads>(a, h, at, token, cursor, shared);
  step_dots<T, kHeads>(a, h, at, token, cursor, N, C, shared);
  float own_sum = 0.0F;
#pragma unroll 1
  for (int k = 0; k < kHeads; ++k) {
    tile.template unpack<kState>(stored);
    // 16-bit states leave registers to fetch the next head's before this one's sums.
    const bool more = k + 1 < kHeads;
    if (kState != Dtype::float32 && more) tile.template load<kState>(a.state.data, next_state, stored);
    const float sum = tile.dot(C);
    if (own_head == k) own_sum = sum;
    if (kState == Dtype::float32 && more) tile.template load<kState>(a.state.data, next_state, stored);
    next_state += state_elements;
  }
  __pipeline_wait_prior(0);
  __syncthreads();

  if (writes) {
    const float y = step_y<kHeads>(a, shared, memory, own_head, p, cursor, own_sum, x, D);
    const std::int64_t to_y =
        h.x_offset(a.shape, token, a.out.y_stride) + own_head * static_cast<int>(a.shape.head_dim);
    store_element(a.out.y, to_y + p, y, a.out.dtype);
  }
  append_step<kHeads>(a, h, token, cursor, shared);
}

}  // namespace replayeval::mamba2::cuda
