// The state that checkpoint and ring stand for, and the ring cursors, on the GPU.
#include "kernels/mamba2/backends.h"
#include "kernels/mamba2/ring_cuda.cuh"

namespace replayeval::mamba2::cuda {
namespace {

struct ReconstructArguments {
  Shape shape;
  ReplayForm form;
  Block block;
  Parameters parameters;
  State state;
  Ring ring;
  float* state_out;
  int rows_per_block;
};

template <class T, Dtype kState>
__global__ void __launch_bounds__(32 * kMaxWarps) reconstruct_kernel(const __grid_constant__ ReconstructArguments a) {
  extern __shared__ __align__(16) float memory[];
  const BlockHead h(a.shape, a.block);
  const int first_row = static_cast<int>(blockIdx.y) * a.rows_per_block;
  const auto L = static_cast<int>(a.form.buffer_len);
  const std::int64_t out_offset = static_cast<std::int64_t>(blockIdx.x) * a.shape.head_dim * a.shape.state_size;
  const bool known_slot = h.slot >= 0 && h.slot < a.state.slots;
  const int cursor = known_slot ? a.ring.cursor[h.slot] : 0;
  T tile(a.shape, first_row);
  if (known_slot && cursor >= 0 && cursor < L) {
    tile.template load<kState>(a.state.data, h.state_offset);
    const SharedRing ring(memory, L, tile.state_size, a.rows_per_block);
    load_ring(a.shape, a.form, a.ring, h, cursor, first_row, a.rows_per_block, ring);
    __syncthreads();
    ring_weights(a.form.flush, decay_rate(a.parameters.A_log[h.head]), ring.dt, cursor, ring.weight, ring.scale);
    __syncthreads();
    apply_ring(tile, a.form.flush, ring, cursor, a.rows_per_block, first_row);
  } else {
    tile.fill(h.slot < 0 ? 0.0F : nanf(""));
  }
  tile.template store<Dtype::float32>(a.state_out, out_offset, false);
}

__global__ void advance_kernel(Block block, int buffer_len, std::int32_t* cursor) {
  const std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (row >= block.batch) return;
  const std::int64_t slot = block.slots == nullptr ? row : block.slots[row];
  if (slot >= 0) cursor[slot] = static_cast<std::int32_t>((cursor[slot] + block.tokens) % buffer_len);
}

}  // namespace

void reconstruct(void* stream, const Shape& shape, const ReplayForm& form, const Block& block,
                 const Parameters& parameters, const State& state, const Ring& ring, float* state_out) {
  with_tile(shape, state.storage.dtype, [&]<class T, Dtype kState>() {
    const HeadGrid grid = head_grid(shape, block.batch, T::kWarpRows);
    const ReconstructArguments arguments{shape, form, block, parameters, state, ring, state_out, grid.rows_per_block};
    const std::size_t shared = SharedRing::bytes(form.buffer_len, shape.state_size, grid.rows_per_block);
    allow_shared(reconstruct_kernel<T, kState>, shared);
    reconstruct_kernel<T, kState>
        <<<grid.blocks, grid.threads, shared, static_cast<cudaStream_t>(stream)>>>(arguments);
    expect_launched("reconstruct");
  });
}

void advance_cursors(void* stream, const Block& block, std::int64_t buffer_len, std::int32_t* cursor) {
  constexpr unsigned kThreads = 128;
  const auto blocks = static_cast<unsigned>((block.batch + kThreads - 1) / kThreads);
  advance_kernel<<<blocks, kThreads, 0, static_cast<cudaStream_t>(stream)>>>(block, static_cast<int>(buffer_len),
                                                                             cursor);
  expect_launched("advance_cursors");
}

}  // namespace replayeval::mamba2::cuda
