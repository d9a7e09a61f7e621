// The replay executor's kernels and launches on the GPU.
#include "kernels/mamba2/backends.h"
#include "kernels/mamba2/replay_step_cuda.cuh"
#include "kernels/mamba2/scan_backends_cuda.h"
#include "kernels/mamba2/stream_backends_cuda.h"

namespace replayeval::mamba2::cuda {
namespace {

// The cursor of the block's slot, or -1 after filling y where there is nothing else to do.
__device__ __forceinline__ int cursor_or_fill(const ReplayArguments& a, const BlockHead& h) {
  const bool known_slot = h.slot >= 0 && h.slot < a.state.slots;
  const int cursor = known_slot ? a.ring.cursor[h.slot] : 0;
  if (known_slot && cursor >= 0 && cursor < a.form.buffer_len) return cursor;
  for (int k = 0; k < a.cut.heads_per_block; ++k) {
    fill_y(a.shape, a.block, a.out, h.at(a.shape, k), h.slot < 0 ? 0.0F : nanf(""));
  }
  return -1;
}

template <class T, Dtype kState, Known kKnown>
__global__ void __launch_bounds__(32 * kMaxWarps, 2) replay_kernel(const __grid_constant__ ReplayArguments a) {
  extern __shared__ __align__(16) float memory[];
  const BlockHead h(a.shape, a.block, a.cut);
  const int cursor = cursor_or_fill(a, h);
  if (cursor < 0) return;
  T tile(static_cast<int>(a.shape.state_size), h.rows);
  typename T::template Stored<kState> stored;
  tile.template load<kState>(a.state.data, h.state_offset, stored);
  tile.template unpack<kState>(stored);
  replay_block<T, kState, kKnown>(a, h, tile, memory, cursor);
}

__device__ __forceinline__ void prefetch_ring(const ReplayArguments& a, const BlockHead& h) {
  if (h.slot < 0 || h.slot >= a.state.slots) return;
  const auto L = static_cast<int>(a.form.buffer_len);
  const auto N = static_cast<int>(a.shape.state_size);
  const auto P = static_cast<int>(a.shape.head_dim);
  const RingOffsets at(a.shape, L, h);
  prefetch_entries(a.ring.B, a.form.ring_dtype, at.group * N, N, L, N);
  prefetch_entries(a.ring.x, a.form.ring_dtype, at.head * P + h.first_row, P, L, h.rows);
  prefetch_entries(a.ring.dt, Dtype::float32, at.head, L, 1, L);
}

// One token by the output_only route.
template <class T, Dtype kState, int kHeads>
__global__ void __launch_bounds__(32 * kMaxWarps, T::kVectors == 1 ? 4 : 2)
    replay_step_kernel(const __grid_constant__ ReplayArguments a) {
  extern __shared__ __align__(16) float memory[];
  const BlockHead h(a.shape, a.block, a.cut);
  prefetch_state<kState>(a.state, h, static_cast<int>(a.shape.state_size));
  prefetch_ring(a, h);
  wait_for_earlier_launches();
  let_later_launches_begin();
  T tile(static_cast<int>(a.shape.state_size), h.rows);
  typename T::template Stored<kState> stored;
  if (h.slot >= 0 && h.slot < a.state.slots) tile.template load<kState>(a.state.data, h.state_offset, stored);
  const int cursor = cursor_or_fill(a, h);
  if (cursor < 0) return;
  if (cursor + 1 < a.form.buffer_len) {
    replay_step<T, kState, kHeads>(a, h, tile, stored, reinterpret_cast<char*>(memory), cursor);
    return;
  }
#pragma unroll 1
  for (int k = 0; k < kHeads; ++k) {
    tile.template unpack<kState>(stored);
    replay_block<T, kState, Known::one_flush>(a, h.at(a.shape, k), tile, memory, cursor);
    if (k + 1 == kHeads) break;
    tile.template load<kState>(a.state.data, h.at(a.shape, k + 1).state_offset, stored);
    __syncthreads();
  }
}

// After a block of several tokens: the entries that are live at its end and came from it, straight from the inputs.
__global__ void append_tail_kernel(const __grid_constant__ ReplayArguments a) {
  const BlockHead h(a.shape, a.block, a.cut);
  const std::int64_t L = a.form.buffer_len;
  if (h.slot < 0 || h.slot >= a.state.slots) return;
  const std::int64_t cursor = a.ring.cursor[h.slot];
  if (cursor < 0 || cursor >= L) return;
  const bool wraps = cursor + a.block.tokens >= L;
  const std::int64_t begin = wraps ? 0 : cursor;
  const std::int64_t end = (cursor + a.block.tokens) % L;
  const std::int64_t first_token = h.row * a.block.tokens + (wraps ? a.block.tokens - end : 0);
  for (std::int64_t position = begin; position < end; ++position) {
    const std::int64_t token = first_token + position - begin;
    const float raw = load_element(a.in.dt, token * a.in.dt_stride + h.head, a.in.dtype);
    const float dt = time_step(raw, a.parameters.dt_bias[h.head], a.parameters.dt_min, a.parameters.dt_max);
    append_entry(
        a, h, static_cast<int>(position), dt,
        [&](int i) {
          return load_element(a.in.B, token * a.in.B_stride + h.group * a.shape.state_size + i, a.in.dtype);
        },
        [&](int i) { return load_element(a.in.x, h.x_offset(a.shape, token, a.in.x_stride) + i, a.in.dtype); });
  }
}

void launch_block(void (*kernel)(ReplayArguments), cudaStream_t stream, const HeadGrid& grid, std::size_t shared,
                  const ReplayArguments& arguments) {
  allow_shared(kernel, shared);
  kernel<<<grid.blocks, grid.threads, shared, stream>>>(arguments);
  expect_launched("replay");
}

// Several heads a block where that still leaves every multiprocessor many blocks, and the ring's x fits beside others'.
constexpr int kHeadsTogether = 4;
bool takes_heads_together(const HeadGrid& grid, const ReplayForm& form, const Shape& shape, std::int64_t batch) {
  constexpr std::int64_t kManyBlocks = 1024;
  constexpr std::size_t kMaxBytes = std::size_t{16} * 1024;
  return grid.cut.tiles == 1 && grid.cut.heads_per_group % kHeadsTogether == 0 &&
         batch * shape.num_heads / kHeadsTogether >= kManyBlocks &&
         step_bytes(form, kHeadsTogether, grid.cut.rows_per_block) <= kMaxBytes;
}

// Shared memory of replay_block().
std::size_t block_bytes(const ReplayArguments& a, int rows_per_block) {
  const std::size_t ring = SharedRing::bytes(a.form.buffer_len, a.shape.state_size, rows_per_block);
  const bool products =
      takes_products(static_cast<int>(a.shape.state_size), a.state.storage.dtype, a.form.ring_dtype, a.form.flush);
  return products ? ring + kChunkBytes : ring;
}

template <class T, Dtype kState>
void launch_step(cudaStream_t stream, HeadGrid grid, ReplayArguments arguments) {
  const std::size_t for_flush = block_bytes(arguments, grid.cut.rows_per_block);
  if (takes_heads_together(grid, arguments.form, arguments.shape, arguments.block.batch)) {
    grid.blocks.x /= kHeadsTogether;
    arguments.cut.heads_per_block = kHeadsTogether;
    const std::size_t shared = std::max(for_flush, step_bytes(arguments.form, kHeadsTogether, grid.cut.rows_per_block));
    allow_shared(replay_step_kernel<T, kState, kHeadsTogether>, shared);
    launch(replay_step_kernel<T, kState, kHeadsTogether>, grid.blocks, grid.threads, shared, stream, arguments);
  } else {
    allow_shared(replay_step_kernel<T, kState, 1>, for_flush);
    launch(replay_step_kernel<T, kState, 1>, grid.blocks, grid.threads, for_flush, stream, arguments);
  }
}

}  // namespace

void replay(void* stream, const Shape& shape, const ReplayForm& form, const Block& block, const Inputs& in,
            const Parameters& parameters, const State& state, const Ring& ring, const Output& out) {
  const auto on = static_cast<cudaStream_t>(stream);
  if (replay_few(on, shape, form, block, in, parameters, state, ring, out)) return;
  if (replay_stream(on, shape, form, block, in, parameters, state, ring, out)) return;
  const bool scanned = replay_scan(on, shape, form, block, in, parameters, state, ring, out);
  with_tile(shape, state.storage.dtype, [&]<class T, Dtype kState>() {
    for_batch(head_grid(head_shape(shape), block.batch, T::kWarpRows), block.batch, [&](const HeadGrid& grid) {
      const ReplayArguments arguments{shape, form, block, in, parameters, state, ring, out, grid.cut};
      const std::size_t shared = block_bytes(arguments, grid.cut.rows_per_block);
      if (scanned) {
        // All that is left is to append to the ring.
      } else if (block.tokens == 1 && form.route == Route::output_only) {
        launch_step<T, kState>(on, grid, arguments);
      } else if (block.tokens == 1 || form.route == Route::output_only) {
        launch_block(replay_kernel<T, kState, Known::in_place>, on, grid, shared, arguments);
      } else {
        launch_block(replay_kernel<T, kState, Known::nothing>, on, grid, shared, arguments);
      }
      if (block.tokens == 1) return;
      append_tail_kernel<<<grid.blocks, grid.threads, 0, on>>>(arguments);
      expect_launched("replay, appending to the ring");
    });
  });
}

}  // namespace replayeval::mamba2::cuda
