// The state that checkpoint and ring stand for, on the GPU.
#include "kernels/delta_rule/backends.h"
#include "kernels/delta_rule/window_cuda.cuh"

namespace replayeval::delta_rule::cuda {
namespace {

struct ReconstructArguments {
  Shape shape;
  ReplayForm form;
  Block block;
  State state;
  Ring ring;
  float* state_out;
  HeadCut cut;
};

// The tile becomes S_w, every product as a flush at this point would sum it, but for those on tensor cores: an inputs
// ring's newest d comes from the state.
template <bool kChannels, class T>
__device__ __forceinline__ void rebuild(const ReplayForm& form, const SharedWindow<kChannels>& w, T& tile, int count) {
  const bool inputs = form.ring_form == RingForm::inputs;
  if (form.flush == Flush::sequential) {
    decay_each(w, count);
    __syncthreads();
    run_sequence(w, tile, count);
    return;
  }
  const int own = count - 1;
  if (inputs && count > 0) find_deltas(w, tile, own);
  weigh(w, count);
  __syncthreads();
  if (!inputs || count == 0) {
    sum_entries(w, tile, w.values, count);
  } else {
    sum_entries(w, tile, w.deltas, own);
    update_tile(tile, w.key(own), w.values + own * w.stride, w.beta[own]);
  }
}

template <class T, Dtype kState, bool kChannels>
__global__ void __launch_bounds__(32 * kMaxWarps) reconstruct_kernel(const __grid_constant__ ReconstructArguments a) {
  extern __shared__ __align__(16) float memory[];
  const BlockHead h(a.shape, a.block, a.cut);
  const auto L = static_cast<int>(a.form.buffer_len);
  const auto K = static_cast<int>(a.shape.key_dim);
  const bool known_slot = h.slot >= 0 && h.slot < a.state.slots;
  const int cursor = known_slot ? a.ring.cursor[h.slot] : -1;
  T tile(K, h.rows);
  if (cursor >= 0 && cursor < L) {
    typename T::template Stored<kState> stored;
    tile.template load<kState>(a.state.data, h.state_offset, stored);
    const SharedWindow<kChannels> w(memory, L, K, a.cut.rows_per_block);
    load_window(a.shape, a.form, a.ring, h, cursor, w);
    __syncthreads();
    tile.template unpack<kState>(stored);
    rebuild(a.form, w, tile, cursor);
  } else {
    tile.fill(h.slot < 0 ? 0.0F : nanf(""));
  }
  typename T::template Stored<Dtype::float32> result;
  ThreadCounts uncounted;
  tile.template pack<Dtype::float32>(false, false, uncounted, result);
  const std::int64_t out_row = (h.row * a.shape.num_value_heads + h.head) * a.shape.value_dim + h.first_row;
  tile.template store<Dtype::float32>(a.state_out, out_row * K, result);
}

template <bool kChannels>
void launch_reconstruct(cudaStream_t stream, ReconstructArguments arguments) {
  const Shape& shape = arguments.shape;
  with_tile(shape, arguments.state.storage.dtype, [&]<class T, Dtype kState>() {
    for_batch(head_grid(head_shape(shape), arguments.block.batch, T::kWarpRows), arguments.block.batch,
              [&](const HeadGrid& grid) {
                arguments.cut = grid.cut;
                const std::size_t shared =
                    SharedWindow<kChannels>::bytes(arguments.form.buffer_len, shape.key_dim, grid.cut.rows_per_block);
                allow_shared(reconstruct_kernel<T, kState, kChannels>, shared);
                reconstruct_kernel<T, kState, kChannels><<<grid.blocks, grid.threads, shared, stream>>>(arguments);
                expect_launched("delta_rule reconstruct");
              });
  });
}

}  // namespace

void reconstruct(void* stream, Family family, const Shape& shape, const ReplayForm& form, const Block& block,
                 const State& state, const Ring& ring, float* state_out) {
  const auto launch = family == Family::kda ? launch_reconstruct<true> : launch_reconstruct<false>;
  launch(static_cast<cudaStream_t>(stream), {shape, form, block, state, ring, state_out, {}});
}

}  // namespace replayeval::delta_rule::cuda
