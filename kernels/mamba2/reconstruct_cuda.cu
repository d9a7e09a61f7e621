// The state that checkpoint and ring stand for, on the GPU.
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
  HeadCut cut;
};

template <class T, Dtype kState>
__global__ void __launch_bounds__(32 * kMaxWarps) reconstruct_kernel(const __grid_constant__ ReconstructArguments a) {
  extern __shared__ __align__(16) float memory[];
  const BlockHead h(a.shape, a.block, a.cut);
  const auto L = static_cast<int>(a.form.buffer_len);
  const std::int64_t out_row = (h.row * a.shape.num_heads + h.head) * a.shape.head_dim + h.first_row;
  const bool known_slot = h.slot >= 0 && h.slot < a.state.slots;
  const int cursor = known_slot ? a.ring.cursor[h.slot] : 0;
  T tile(static_cast<int>(a.shape.state_size), h.rows);
  if (known_slot && cursor >= 0 && cursor < L) {
    typename T::template Stored<kState> stored;
    tile.template load<kState>(a.state.data, h.state_offset, stored);
    const SharedRing ring(memory, L, tile.state_size(), a.cut.rows_per_block);
    load_ring(a.shape, a.form, a.ring, h, cursor, ring);
    __syncthreads();
    ring_weights(a.form.flush, decay_rate(a.parameters.A_log[h.head]), ring.dt, cursor, ring.weight, ring.scale,
                 static_cast<int>(threadIdx.x), static_cast<int>(blockDim.x));
    __syncthreads();
    tile.template unpack<kState>(stored);
    apply_ring(tile, a.form.flush, ring, cursor);
  } else {
    tile.fill(h.slot < 0 ? 0.0F : nanf(""));
  }
  typename T::template Stored<Dtype::float32> result;
  ThreadCounts uncounted;
  tile.template pack<Dtype::float32>(false, false, uncounted, result);
  tile.template store<Dtype::float32>(a.state_out, out_row * a.shape.state_size, result);
}

}  // namespace

void reconstruct(void* stream, const Shape& shape, const ReplayForm& form, const Block& block,
                 const Parameters& parameters, const State& state, const Ring& ring, float* state_out) {
  with_tile(shape, state.storage.dtype, [&]<class T, Dtype kState>() {
    for_batch(head_grid(head_shape(shape), block.batch, T::kWarpRows), block.batch, [&](const HeadGrid& grid) {
      const ReconstructArguments arguments{shape, form, block, parameters, state, ring, state_out, grid.cut};
      const std::size_t shared = SharedRing::bytes(form.buffer_len, shape.state_size, grid.cut.rows_per_block);
      allow_shared(reconstruct_kernel<T, kState>, shared);
      reconstruct_kernel<T, kState>
          <<<grid.blocks, grid.threads, shared, static_cast<cudaStream_t>(stream)>>>(arguments);
      expect_launched("reconstruct");
    });
  });
}

}  // namespace replayeval::mamba2::cuda
