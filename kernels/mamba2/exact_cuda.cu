// The exact executor on the GPU: a block holds some rows of one head's state in registers for the whole block of
// tokens, rounded after every token.
#include "kernels/mamba2/backends.h"
#include "kernels/mamba2/scan_backends_cuda.h"
#include "kernels/mamba2/stream_backends_cuda.h"
#include "kernels/mamba2/token_cuda.cuh"

namespace replayeval::mamba2::cuda {
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

struct SharedToken {
  float B[256];
  float C[256];
  float x[kMaxWarps * 8];
  float dt, decay;
};

__device__ __forceinline__ void put(const ExactArguments& a, const BlockHead& h, const TokenOperands& operands,
                                    SharedToken& to) {
  operands.store(a.shape, h, to.x, to.B, to.C);
  if (!TokenOperands::has_dt()) return;
  const float rate = decay_rate(a.parameters.A_log[h.head]);
  const float dt = operands.dt(a.parameters, h.head);
  to.dt = dt;  // by every lane of the warp, the same value
  to.decay = expf(rate * dt);
}

template <class T, Dtype kState>
__global__ void __launch_bounds__(32 * kMaxWarps, T::kVectors == 1 ? 3 : 2)
    exact_kernel(const __grid_constant__ ExactArguments a) {
  __shared__ __align__(16) SharedToken token;
  const BlockHead h(a.shape, a.block, a.cut);
  prefetch_state<kState>(a.state, h, static_cast<int>(a.shape.state_size));
  wait_for_earlier_launches();
  let_later_launches_begin();
  if (h.slot < 0 || h.slot >= a.state.slots) {
    fill_y(a.shape, a.block, a.out, h, h.slot < 0 ? 0.0F : nanf(""));
    return;
  }
  T tile(static_cast<int>(a.shape.state_size), h.rows);
  typename T::template Stored<kState> stored;
  tile.template load<kState>(a.state.data, h.state_offset, stored);
  const std::int64_t first_token = h.row * a.block.tokens;
  TokenOperands operands;
  operands.load(a.shape, a.in, h, first_token);
  const float D = a.parameters.D[h.head];

  const bool saturate = a.state.storage.overflow == Overflow::saturate;
  const bool counting = a.state.counts != nullptr;
  ThreadCounts counts;
  put(a, h, operands, token);
  __syncthreads();
  tile.template unpack<kState>(stored);
  for (std::int64_t t = 0; t < a.block.tokens; ++t) {
    const bool more = t + 1 < a.block.tokens;
    if (more) operands.load(a.shape, a.in, h, first_token + t + 1);
    const float* x = token.x + tile.block_row;
    tile.multiply(token.decay);
    tile.add_outer(token.dt, x, token.B);
    const float sum = tile.dot(token.C);
    if (tile.writes_row()) {
      const std::int64_t y = h.x_offset(a.shape, first_token + t, a.out.y_stride) + tile.block_row + T::own_row();
      store_element(a.out.y, y, fmaf(D, x[T::own_row()], sum), a.out.dtype);
    }
    tile.template pack<kState>(saturate, counting, counts, stored);
    if (!more) break;
    tile.template unpack<kState>(stored);
    __syncthreads();
    put(a, h, operands, token);
    __syncthreads();
  }
  tile.template store<kState>(a.state.data, h.state_offset, stored);
  if (counting) add_counts(counts, a.state.counts);
}

}  // namespace

void exact(void* stream, const Shape& shape, const Block& block, const Inputs& in, const Parameters& parameters,
           const State& state, const Output& out) {
  const auto on = static_cast<cudaStream_t>(stream);
  if (exact_stream(on, shape, block, in, parameters, state, out)) return;
  if (exact_scan(on, shape, block, in, parameters, state, out)) return;
  with_tile(shape, state.storage.dtype, [&]<class T, Dtype kState>() {
    for_batch(head_grid(head_shape(shape), block.batch, T::kWarpRows), block.batch, [&](const HeadGrid& grid) {
      const ExactArguments arguments{shape, block, in, parameters, state, out, grid.cut};
      launch(exact_kernel<T, kState>, grid.blocks, grid.threads, 0, on, arguments);
    });
  });
}

}  // namespace replayeval::mamba2::cuda
