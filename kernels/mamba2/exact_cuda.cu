// The exact executor on the GPU: a block holds some rows of one head's state in registers for the whole block of tokens,
// rounded after every token.
#include "kernels/mamba2/backends.h"
#include "kernels/mamba2/launch_cuda.cuh"

namespace replayeval::mamba2::cuda {
namespace {

struct ExactArguments {
  Shape shape;
  Block block;
  Inputs in;
  Parameters parameters;
  State state;
  Output out;
  int rows_per_block;
};

constexpr int kMaxRows = kMaxWarps * 8;

struct ExactToken {
  float x[kMaxRows];
  float B[256];
  float C[256];
  float dt, decay;
};

// Brings a token's operands to shared memory; x from the block's first row.
__device__ __forceinline__ void stage(const ExactArguments& a, const BlockHead& h, int first_row, std::int64_t token,
                                      ExactToken& to) {
  const auto N = static_cast<int>(a.shape.state_size);
  const int rows = min(a.rows_per_block, static_cast<int>(a.shape.head_dim) - first_row);
  if (threadIdx.x == 0) {
    const float raw = load_element(a.in.dt, token * a.in.dt_stride + h.head, a.in.dtype);
    to.dt = time_step(raw, a.parameters.dt_bias[h.head], a.parameters.dt_min, a.parameters.dt_max);
    to.decay = expf(decay_rate(a.parameters.A_log[h.head]) * to.dt);
  }
  for (int i = threadIdx.x; i < N; i += blockDim.x) {
    to.B[i] = load_element(a.in.B, token * a.in.B_stride + h.group * N + i, a.in.dtype);
    to.C[i] = load_element(a.in.C, token * a.in.C_stride + h.group * N + i, a.in.dtype);
  }
  for (int i = threadIdx.x; i < rows; i += blockDim.x) {
    to.x[i] = load_element(a.in.x, token * a.in.x_stride + h.head * a.shape.head_dim + first_row + i, a.in.dtype);
  }
}

template <class T, Dtype kState>
__global__ void __launch_bounds__(32 * kMaxWarps, 3) exact_kernel(const __grid_constant__ ExactArguments a) {
  __shared__ __align__(16) ExactToken token;
  const BlockHead h(a.shape, a.block);
  const int first_row = static_cast<int>(blockIdx.y) * a.rows_per_block;
  if (h.slot < 0 || h.slot >= a.state.slots) {
    fill_y(a.shape, a.block, a.out, h, first_row, a.rows_per_block, h.slot < 0 ? 0.0F : nanf(""));
    return;
  }
  T tile(a.shape, first_row);
  tile.template load<kState>(a.state.data, h.state_offset);

  const bool saturate = a.state.storage.overflow == Overflow::saturate;
  const bool counting = a.state.counts != nullptr;
  const float D = a.parameters.D[h.head];
  ThreadCounts counts;
  for (std::int64_t t = 0; t < a.block.tokens; ++t) {
    const std::int64_t r = h.row * a.block.tokens + t;
    if (t > 0) __syncthreads();
    stage(a, h, first_row, r, token);
    __syncthreads();
    const float* x = token.x + (tile.first_row - first_row);
    tile.multiply(token.decay);
    tile.add_outer(token.dt, x, token.B);
    const float sum = tile.dot(token.C);
    if (tile.writes_row()) {
      const int p = tile.own_row();
      store_element(a.out.y, r * a.out.y_stride + h.head * a.shape.head_dim + tile.first_row + p, fmaf(D, x[p], sum),
                    a.out.dtype);
    }
    tile.template round<kState>(saturate, counting, counts);
  }
  tile.template store<kState>(a.state.data, h.state_offset, saturate);
  if (counting) add_counts(counts, a.state.counts);
}

}  // namespace

void exact(void* stream, const Shape& shape, const Block& block, const Inputs& in, const Parameters& parameters,
           const State& state, const Output& out) {
  with_tile(shape, state.storage.dtype, [&]<class T, Dtype kState>() {
    const HeadGrid grid = head_grid(shape, block.batch, T::kWarpRows);
    const ExactArguments arguments{shape, block, in, parameters, state, out, grid.rows_per_block};
    exact_kernel<T, kState><<<grid.blocks, grid.threads, 0, static_cast<cudaStream_t>(stream)>>>(arguments);
    expect_launched("exact");
  });
}

}  // namespace replayeval::mamba2::cuda
