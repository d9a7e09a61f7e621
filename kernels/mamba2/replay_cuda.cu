// The replay executor on the GPU: a block holds some rows of one head's checkpoint in registers and the ring in shared
// memory for the whole block of tokens.
#include "kernels/mamba2/backends.h"
#include "kernels/mamba2/ring_cuda.cuh"

namespace replayeval::mamba2::cuda {
namespace {

struct ReplayArguments {
  Shape shape;
  ReplayForm form;
  Block block;
  Inputs in;
  Parameters parameters;
  State state;
  Ring ring;
  Output out;
  int rows_per_block;
};

__device__ __forceinline__ float token_dt(const Inputs& in, const Parameters& parameters, int head, std::int64_t token) {
  const float raw = load_element(in.dt, token * in.dt_stride + head, in.dtype);
  return time_step(raw, parameters.dt_bias[head], parameters.dt_min, parameters.dt_max);
}

// A token's operands, unrounded, at ring position `position`.
__device__ __forceinline__ void stage(const ReplayArguments& a, const BlockHead& h, int first_row, std::int64_t token,
                                      int position, const SharedRing& to) {
  const auto N = static_cast<int>(a.shape.state_size);
  const int present = min(a.rows_per_block, static_cast<int>(a.shape.head_dim) - first_row);
  if (threadIdx.x == 0) to.dt[position] = token_dt(a.in, a.parameters, h.head, token);
  for (int i = threadIdx.x; i < N; i += blockDim.x) {
    to.B[position * N + i] = load_element(a.in.B, token * a.in.B_stride + h.group * N + i, a.in.dtype);
    to.C[i] = load_element(a.in.C, token * a.in.C_stride + h.group * N + i, a.in.dtype);
  }
  for (int i = threadIdx.x; i < present; i += blockDim.x) {
    to.x[position * a.rows_per_block + i] =
        load_element(a.in.x, token * a.in.x_stride + h.head * a.shape.head_dim + first_row + i, a.in.dtype);
  }
}

// From here on the entry is what the ring's memory would give back.
__device__ __forceinline__ void round_entry(const ReplayArguments& a, int first_row, int position,
                                            const SharedRing& ring) {
  if (a.form.ring_dtype == Dtype::float32) return;
  const auto N = static_cast<int>(a.shape.state_size);
  float* B = ring.B + position * N;
  const int present = min(a.rows_per_block, static_cast<int>(a.shape.head_dim) - first_row);
  float* x = ring.x + position * a.rows_per_block;
  for (int i = threadIdx.x; i < N; i += blockDim.x) B[i] = rounded<Dtype::bfloat16>(B[i], false);
  for (int i = threadIdx.x; i < present; i += blockDim.x) x[i] = rounded<Dtype::bfloat16>(x[i], false);
}

// Appends a staged, unrounded entry to the ring's memory: x by every block, B and dt by one of those that share them.
__device__ __forceinline__ void append_entry(const ReplayArguments& a, const BlockHead& h, int first_row, int position,
                                             const SharedRing& from) {
  const auto N = static_cast<int>(a.shape.state_size);
  const auto heads_per_group = static_cast<int>(a.shape.num_heads / a.shape.num_groups);
  const std::int64_t head_entry =
      (static_cast<std::int64_t>(h.slot) * a.shape.num_heads + h.head) * a.form.buffer_len + position;
  const std::int64_t group_entry =
      (static_cast<std::int64_t>(h.slot) * a.shape.num_groups + h.group) * a.form.buffer_len + position;
  const int present = min(a.rows_per_block, static_cast<int>(a.shape.head_dim) - first_row);
  for (int i = threadIdx.x; i < present; i += blockDim.x) {
    store_element(a.ring.x, head_entry * a.shape.head_dim + first_row + i, from.x[position * a.rows_per_block + i],
                  a.form.ring_dtype);
  }
  if (blockIdx.y != 0) return;
  if (threadIdx.x == 0) a.ring.dt[head_entry] = from.dt[position];
  if (h.head % heads_per_group != 0) return;
  for (int i = threadIdx.x; i < N; i += blockDim.x) {
    store_element(a.ring.B, group_entry * N + i, from.B[position * N + i], a.form.ring_dtype);
  }
}

// S_w C by the state route. On a flush the tile becomes S_w, rounded; otherwise it stays the checkpoint, unless kInPlace
// says that nobody reads it again.
template <class T, Dtype kState, bool kInPlace>
__device__ __forceinline__ float dot_by_state(const ReplayArguments& a, T& tile, const SharedRing& ring, int count,
                                              int first_row, bool flush, ThreadCounts& counts) {
  float sum;
  if constexpr (kInPlace) {
    apply_ring(tile, a.form.flush, ring, count, a.rows_per_block, first_row);
    sum = tile.dot(ring.C);
  } else {
    T state = tile;
    apply_ring(state, a.form.flush, ring, count, a.rows_per_block, first_row);
    sum = state.dot(ring.C);
    if (flush) tile = state;
  }
  if (flush) {
    tile.template round<kState>(a.state.storage.overflow == Overflow::saturate, a.state.counts != nullptr, counts);
  }
  return sum;
}

// One token of the block, staged at `position`; ends with y written and the entry as the ring would give it back.
template <class T, Dtype kState, bool kInPlace>
__device__ __forceinline__ void replay_token(const ReplayArguments& a, const BlockHead& h, T& tile,
                                             const SharedRing& ring, int position, std::int64_t token, int first_row,
                                             ThreadCounts& counts) {
  const int count = position + 1;
  const int rows = a.rows_per_block;
  const bool flush = count == a.form.buffer_len;
  const bool by_state = flush || a.form.route == Route::state_and_output;
  ring_weights(by_state ? a.form.flush : Flush::summed, decay_rate(a.parameters.A_log[h.head]), ring.dt, count,
               ring.weight, ring.scale);
  if (!by_state) {
    const auto N = static_cast<int>(a.shape.state_size);
    for (int j = static_cast<int>(threadIdx.x) / 32; j < count; j += static_cast<int>(blockDim.x) / 32) {
      const float dot = warp_dot(ring.B + j * N, ring.C, N);
      if (threadIdx.x % 32 == 0) ring.dots[j] = dot;
    }
  }
  __syncthreads();
  float y;
  if (by_state) {
    y = dot_by_state<T, kState, kInPlace>(a, tile, ring, count, first_row, flush, counts);
  } else {
    y = ring.scale[0] * tile.dot(ring.C);
  }
  if (!tile.writes_row()) return;
  const int p = tile.first_row - first_row + tile.own_row();
  if (!by_state) {
    for (int j = 0; j < count; ++j) y = fmaf(ring.weight[j] * ring.dots[j], ring.x[j * rows + p], y);
  }
  y = fmaf(a.parameters.D[h.head], ring.x[position * rows + p], y);
  store_element(a.out.y, token * a.out.y_stride + h.head * a.shape.head_dim + first_row + p, y, a.out.dtype);
}

template <class T, Dtype kState, bool kInPlace>
__global__ void __launch_bounds__(32 * kMaxWarps, kInPlace ? 3 : 2)
    replay_kernel(const __grid_constant__ ReplayArguments a) {
  extern __shared__ __align__(16) float memory[];
  const BlockHead h(a.shape, a.block);
  const int first_row = static_cast<int>(blockIdx.y) * a.rows_per_block;
  const auto L = static_cast<int>(a.form.buffer_len);
  const bool known_slot = h.slot >= 0 && h.slot < a.state.slots;
  const int cursor = known_slot ? a.ring.cursor[h.slot] : 0;
  if (!known_slot || cursor < 0 || cursor >= L) {
    fill_y(a.shape, a.block, a.out, h, first_row, a.rows_per_block, h.slot < 0 ? 0.0F : nanf(""));
    return;
  }
  T tile(a.shape, first_row);
  tile.template load<kState>(a.state.data, h.state_offset);
  const SharedRing ring(memory, L, tile.state_size, a.rows_per_block);
  load_ring(a.shape, a.form, a.ring, h, cursor, first_row, a.rows_per_block, ring);

  ThreadCounts counts;
  bool flushed = false;
  int position = cursor;
  for (std::int64_t t = 0; t < a.block.tokens; ++t) {
    const std::int64_t token = h.row * a.block.tokens + t;
    if (t > 0) __syncthreads();
    if (t > 0) round_entry(a, first_row, position == 0 ? L - 1 : position - 1, ring);
    stage(a, h, first_row, token, position, ring);
    __syncthreads();
    replay_token<T, kState, kInPlace>(a, h, tile, ring, position, token, first_row, counts);
    ++position;
    if (position == L) {
      position = 0;
      flushed = true;
    }
  }
  // A longer block's entries are appended by append_tail_kernel: other blocks may still read the positions they go to.
  if (a.block.tokens == 1 && !flushed) append_entry(a, h, first_row, cursor, ring);
  if (flushed) {
    tile.template store<kState>(a.state.data, h.state_offset, a.state.storage.overflow == Overflow::saturate);
    if (a.state.counts != nullptr) add_counts(counts, a.state.counts);
  }
}

// After a block of several tokens: the entries that are live at its end and came from it, straight from the inputs.
__global__ void append_tail_kernel(const __grid_constant__ ReplayArguments a) {
  const BlockHead h(a.shape, a.block);
  const std::int64_t L = a.form.buffer_len;
  const std::int64_t N = a.shape.state_size;
  const std::int64_t P = a.shape.head_dim;
  if (h.slot < 0 || h.slot >= a.state.slots) return;
  const std::int64_t cursor = a.ring.cursor[h.slot];
  if (cursor < 0 || cursor >= L) return;
  const bool wraps = cursor + a.block.tokens >= L;
  const std::int64_t begin = wraps ? 0 : cursor;
  const std::int64_t end = (cursor + a.block.tokens) % L;
  const std::int64_t first_token = h.row * a.block.tokens + (wraps ? a.block.tokens - end : 0);
  const bool leads_group = h.head % (a.shape.num_heads / a.shape.num_groups) == 0;
  for (std::int64_t position = begin; position < end; ++position) {
    const std::int64_t token = first_token + position - begin;
    const std::int64_t head_entry = (h.slot * a.shape.num_heads + h.head) * L + position;
    const std::int64_t group_entry = (h.slot * a.shape.num_groups + h.group) * L + position;
    if (threadIdx.x == 0) a.ring.dt[head_entry] = token_dt(a.in, a.parameters, h.head, token);
    for (std::int64_t i = threadIdx.x; i < P; i += blockDim.x) {
      const float x = load_element(a.in.x, token * a.in.x_stride + h.head * P + i, a.in.dtype);
      store_element(a.ring.x, head_entry * P + i, x, a.form.ring_dtype);
    }
    for (std::int64_t i = threadIdx.x; leads_group && i < N; i += blockDim.x) {
      const float B = load_element(a.in.B, token * a.in.B_stride + h.group * N + i, a.in.dtype);
      store_element(a.ring.B, group_entry * N + i, B, a.form.ring_dtype);
    }
  }
}

template <class T, Dtype kState, bool kInPlace>
void launch_replay(cudaStream_t stream, const HeadGrid& grid, const ReplayArguments& arguments) {
  const std::size_t shared =
      SharedRing::bytes(arguments.form.buffer_len, arguments.shape.state_size, arguments.rows_per_block);
  allow_shared(replay_kernel<T, kState, kInPlace>, shared);
  replay_kernel<T, kState, kInPlace><<<grid.blocks, grid.threads, shared, stream>>>(arguments);
}

}  // namespace

void replay(void* stream, const Shape& shape, const ReplayForm& form, const Block& block, const Inputs& in,
            const Parameters& parameters, const State& state, const Ring& ring, const Output& out) {
  with_tile(shape, state.storage.dtype, [&]<class T, Dtype kState>() {
    const HeadGrid grid = head_grid(shape, block.batch, T::kWarpRows);
    const ReplayArguments arguments{shape, form, block, in, parameters, state, ring, out, grid.rows_per_block};
    const auto on = static_cast<cudaStream_t>(stream);
    if (form.route == Route::state_and_output && block.tokens > 1) {
      launch_replay<T, kState, false>(on, grid, arguments);
    } else {
      launch_replay<T, kState, true>(on, grid, arguments);
    }
    expect_launched("replay");
    if (block.tokens == 1) return;
    append_tail_kernel<<<grid.blocks.x, 128, 0, on>>>(arguments);
    expect_launched("replay, appending to the ring");
  });
}

}  // namespace replayeval::mamba2::cuda
