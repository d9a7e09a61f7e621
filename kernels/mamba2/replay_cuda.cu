// The replay executor's kernels and launches on the GPU.
#include "kernels/mamba2/backends.h"
#include "kernels/mamba2/replay_step_cuda.cuh"

namespace replayeval::mamba2::cuda {
namespace {

template <class T, Dtype kState, bool kInPlace>
__global__ void __launch_bounds__(32 * kMaxWarps, kInPlace && T::kVectors == 1 ? 3 : 2)
    replay_kernel(const __grid_constant__ ReplayArguments a) {
  extern __shared__ __align__(16) float memory[];
  const BlockHead h(a.shape, a.block, a.cut);
  const auto L = static_cast<int>(a.form.buffer_len);
  const bool known_slot = h.slot >= 0 && h.slot < a.state.slots;
  const int cursor = known_slot ? a.ring.cursor[h.slot] : 0;
  T tile(a.shape, h.rows);
  typename T::template Loaded<kState> loaded;
  if (known_slot) tile.template load<kState>(a.state.data, h.state_offset, loaded);
  if (!known_slot || cursor < 0 || cursor >= L) {
    fill_y(a.shape, a.block, a.out, h, h.slot < 0 ? 0.0F : nanf(""));
    return;
  }
  if (kInPlace && a.block.tokens == 1 && a.form.route == Route::output_only && cursor + 1 < L) {
    replay_step<T, kState>(a, h, tile, loaded, memory, cursor);
  } else {
    tile.template unpack<kState>(loaded);
    replay_block<T, kState, kInPlace>(a, h, tile, memory, cursor);
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

template <class T, Dtype kState, bool kInPlace>
void launch_replay(cudaStream_t stream, const HeadGrid& grid, const ReplayArguments& arguments) {
  const std::size_t shared =
      SharedRing::bytes(arguments.form.buffer_len, arguments.shape.state_size, grid.cut.rows_per_block);
  allow_shared(replay_kernel<T, kState, kInPlace>, shared);
  replay_kernel<T, kState, kInPlace><<<grid.blocks, grid.threads, shared, stream>>>(arguments);
  expect_launched("replay");
}

}  // namespace

void replay(void* stream, const Shape& shape, const ReplayForm& form, const Block& block, const Inputs& in,
            const Parameters& parameters, const State& state, const Ring& ring, const Output& out) {
  const auto on = static_cast<cudaStream_t>(stream);
  with_tile(shape, state.storage.dtype, [&]<class T, Dtype kState>() {
    for_batch(head_grid(shape, block.batch, T::kWarpRows), block.batch, [&](const HeadGrid& grid) {
      const ReplayArguments arguments{shape, form, block, in, parameters, state, ring, out, grid.cut};
      if (form.route == Route::state_and_output && block.tokens > 1) {
        launch_replay<T, kState, false>(on, grid, arguments);
      } else {
        launch_replay<T, kState, true>(on, grid, arguments);
      }
      if (block.tokens == 1) return;
      append_tail_kernel<<<grid.blocks, grid.threads, 0, on>>>(arguments);
      expect_launched("replay, appending to the ring");
    });
  });
}

}  // namespace replayeval::mamba2::cuda
