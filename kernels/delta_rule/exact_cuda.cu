// The exact executor on the GPU: a block holds some rows of one head's state in registers for the whole block of
// tokens, rounded after every token.
#include "kernels/delta_rule/backends.h"
#include "kernels/delta_rule/scan_backends_cuda.h"
#include "kernels/delta_rule/stream_backends_cuda.h"
#include "kernels/delta_rule/token_cuda.cuh"

namespace replayeval::delta_rule::cuda {
namespace {

struct ExactArguments {
  Shape shape;
  Block block;
  Inputs in;
  Parameters parameters;
  State state;
  Output out;
  HeadCut cut;
};

template <bool kChannels>
struct SharedToken {
  static constexpr int kGates = kChannels ? 256 : 4;
  float q[256], k[256];
  float log_decay[kGates], decay[kGates];
  float v[kMaxWarps * 8];
  float beta;

  __device__ __forceinline__ TokenTarget target() { return {q, k, v, log_decay, decay, &beta}; }
};

template <class T, Dtype kState, bool kChannels>
__global__ void __launch_bounds__(32 * kMaxWarps, T::kVectors == 1 ? 3 : 2)
    exact_kernel(const __grid_constant__ ExactArguments a) {
  __shared__ __align__(16) SharedToken<kChannels> token;
  const BlockHead h(a.shape, a.block, a.cut);
  prefetch_state<kState>(a.state, h, static_cast<int>(a.shape.key_dim));
  wait_for_earlier_launches();
  let_later_launches_begin();
  if (h.slot < 0 || h.slot >= a.state.slots) {
    fill_y(a.shape, a.block, a.out, h, h.slot < 0 ? 0.0F : nanf(""));
    return;
  }
  T tile(static_cast<int>(a.shape.key_dim), h.rows);
  typename T::template Stored<kState> stored;
  tile.template load<kState>(a.state.data, h.state_offset, stored);
  const std::int64_t first_token = h.row * a.block.tokens;
  TokenOperands<kChannels> operands;
  operands.load(a.shape, a.in, h, first_token);

  const bool saturate = a.state.storage.overflow == Overflow::saturate;
  const bool counting = a.state.counts != nullptr;
  ThreadCounts counts;
  operands.store(a.shape, a.in, a.parameters, h, token.target());
  __syncthreads();
  tile.template unpack<kState>(stored);
  for (std::int64_t t = 0; t < a.block.tokens; ++t) {
    const bool more = t + 1 < a.block.tokens;
    if (more) operands.load(a.shape, a.in, h, first_token + t + 1);
    decay_tile<kChannels>(tile, token.decay);
    update_tile(tile, token.k, token.v, token.beta);
    const float y = tile.dot(token.q);
    if (tile.writes_row()) {
      const std::int64_t row = tile.block_row + T::own_row();
      store_element(a.out.y, h.x_offset(a.shape, first_token + t, a.out.y_stride) + row, y, a.out.dtype);
    }
    tile.template pack<kState>(saturate, counting, counts, stored);
    if (!more) break;
    tile.template unpack<kState>(stored);
    __syncthreads();
    operands.store(a.shape, a.in, a.parameters, h, token.target());
    __syncthreads();
  }
  tile.template store<kState>(a.state.data, h.state_offset, stored);
  if (counting) add_counts(counts, a.state.counts);
}

template <bool kChannels>
void launch_exact(cudaStream_t stream, const Shape& shape, const Block& block, const Inputs& in,
                  const Parameters& parameters, const State& state, const Output& out) {
  with_tile(shape, state.storage.dtype, [&]<class T, Dtype kState>() {
    for_batch(head_grid(head_shape(shape), block.batch, T::kWarpRows), block.batch, [&](const HeadGrid& grid) {
      const ExactArguments arguments{shape, block, in, parameters, state, out, grid.cut};
      launch(exact_kernel<T, kState, kChannels>, grid.blocks, grid.threads, 0, stream, arguments);
    });
  });
}

}  // namespace

void exact(void* stream, Family family, const Shape& shape, const Block& block, const Inputs& in,
           const Parameters& parameters, const State& state, const Output& out) {
  const auto on = static_cast<cudaStream_t>(stream);
  if (exact_stream(on, family, shape, block, in, parameters, state, out)) return;
  if (exact_scan(on, family, shape, block, in, parameters, state, out)) return;
  const auto launch = family == Family::kda ? launch_exact<true> : launch_exact<false>;
  launch(on, shape, block, in, parameters, state, out);
}

}  // namespace replayeval::delta_rule::cuda
