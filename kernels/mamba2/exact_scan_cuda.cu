// The exact executor over a block of tokens at the tuned state size. The bits are those of exact_cuda.cu.
#include "kernels/mamba2/scan_backends_cuda.h"
#include "kernels/mamba2/scan_cuda.cuh"

namespace replayeval::mamba2::cuda {
namespace {

struct ExactScanArguments {
  Shape shape;
  Block block;
  Inputs in;
  Parameters parameters;
  State state;
  Output out;
  HeadCut cut;
  bool reads_fours, writes_fours;
};

constexpr int kChunkTokens = 16;

// In shared memory, before the operands.
struct ExactScanMemory {
  float2 dt_and_decay[kMaxWarps][kChunkTokens];  // by the block's heads
  float sums[kMaxWarps][kChunkTokens * ScanTile::kWarpRows];
};

template <Dtype kState>
__global__ void __launch_bounds__(32 * kMaxWarps, kScanBlocks)
    exact_scan_kernel(const __grid_constant__ ExactScanArguments a) {
  extern __shared__ __align__(16) char scan_memory[];
  auto& memory = *reinterpret_cast<ExactScanMemory*>(scan_memory);
  const ScanRows r(a.shape, a.block, a.cut);
  if (!r.has_slot(a.state)) return fill_rows(a.block, a.out, r);
  const ScanOperands operands(scan_memory + sizeof(ExactScanMemory), kChunkTokens, r.rows, a.in, a.reads_fours);
  ScanTimeSteps time_steps(kChunkTokens);
  const std::int64_t first_token = r.first_token(a.block);
  const auto tokens = static_cast<int>(a.block.tokens);
  operands.fetch(r, first_token, min(tokens, kChunkTokens));
  time_steps.fetch(a.in, r, first_token, min(tokens, kChunkTokens));
  ScanTile tile;
  tile.load<kState>(a.state.data, r.state_row(a.shape));

  const bool saturate = a.state.storage.overflow == Overflow::saturate;
  const bool counting = a.state.counts != nullptr;
  ThreadCounts counts;
  float* const sums = memory.sums[threadIdx.x / 32];
  const float D = a.parameters.D[r.first_head + r.warp_head];
#pragma unroll 1
  for (int first = 0; first < tokens; first += kChunkTokens) {
    const int count = min(kChunkTokens, tokens - first);
    operands.take(r, first_token + first, count, 0);
    if (time_steps.has_one(r, count)) {
      const float dt = time_steps.take(a.in, a.parameters, r);
      const float rate = decay_rate(a.parameters.A_log[r.first_head + time_steps.head()]);
      memory.dt_and_decay[time_steps.head()][time_steps.place()] = make_float2(dt, expf(rate * dt));
    }
    __syncthreads();
    const int next = min(kChunkTokens, tokens - first - count);
    operands.fetch(r, first_token + first + count, next);
    time_steps.fetch(a.in, r, first_token + first + count, next);
#pragma unroll 1
    for (int t = 0; t < count; ++t) {
      const float2 scalars = memory.dt_and_decay[r.warp_head][t];
      tile.multiply(scalars.y);
      tile.add_outer(scalars.x, operands.x + t * r.rows + r.warp_row, operands.B + t * ScanTile::kColumns);
      const float sum = tile.dot(operands.C + t * ScanTile::kColumns);
      if (ScanTile::writes_row()) sums[t * ScanTile::kWarpRows + ScanTile::own_row()] = sum;
      tile.round<kState>(saturate, counting, sum, counts);
    }
    __syncwarp();
    write_y(a.out, a.writes_fours, r, D, sums, operands.x + r.warp_row, first_token + first, count);
    __syncthreads();
  }
  tile.store<kState>(a.state.data, r.state_row(a.shape));
  if (counting) add_counts(counts, a.state.counts);
}

template <Dtype kState>
void launch_exact(cudaStream_t stream, const HeadGrid& grid, const ExactScanArguments& arguments) {
  const std::size_t shared =
      sizeof(ExactScanMemory) + ScanOperands::bytes(kChunkTokens, grid.cut.rows_per_block, arguments.in.dtype);
  allow_shared(exact_scan_kernel<kState>, shared);
  exact_scan_kernel<kState><<<grid.blocks, grid.threads, shared, stream>>>(arguments);
  expect_launched("exact, a block of tokens");
}

}  // namespace

bool exact_scan(cudaStream_t stream, const Shape& shape, const Block& block, const Inputs& in,
                const Parameters& parameters, const State& state, const Output& out) {
  HeadGrid all;
  if (!scan_grid(shape, block, all)) return false;
  for_batch(all, block.batch, [&](const HeadGrid& grid) {
    const ExactScanArguments arguments{
        shape, block, in, parameters, state, out, grid.cut, reads_fours(in), writes_fours(out)};
    if (state.storage.dtype == Dtype::float32) {
      launch_exact<Dtype::float32>(stream, grid, arguments);
    } else if (state.storage.dtype == Dtype::bfloat16) {
      launch_exact<Dtype::bfloat16>(stream, grid, arguments);
    } else {
      launch_exact<Dtype::float16>(stream, grid, arguments);
    }
  });
  return true;
}

}  // namespace replayeval::mamba2::cuda
