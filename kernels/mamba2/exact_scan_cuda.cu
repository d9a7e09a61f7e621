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

// Tokens between two waits of a block's warps for one another: as many as leave shared memory for kScanBlocks.
constexpr int chunk_tokens(Dtype inputs) { return inputs == Dtype::float32 ? 16 : 32; }
constexpr float kLeastRegularStep = 0x1p-20F;  // times a regular column's value: a regular factor

// In shared memory, before the operands.
struct Scalars {
  float dt, decay;
  bool regular;  // as ScanTile::round() asks
};
template <int kChunkTokens>
struct ExactScanMemory {
  Scalars scalars[kMaxWarps][kChunkTokens];                         // by the block's heads
  bool regular[kChunkTokens];                                       // of x and B
  float sums[kMaxWarps][(kChunkTokens + 1) * ScanTile::kWarpRows];  // those of a token after its place
};

// The chunk's operands as the tokens' steps take them.
template <Dtype kState, int kChunkTokens>
__device__ __forceinline__ void take_chunk(const ExactScanArguments& a, const ScanRows& r, const ScanOperands& operands,
                                           const ScanTimeSteps& time_steps, std::int64_t token, int count,
                                           ExactScanMemory<kChunkTokens>& memory) {
  operands.take(token, count, 0, [&](int t, const float(&values)[3][4]) {
    if (kState != Dtype::float32) return;
    std::uint32_t least = 0xFFFFFFFFU;
#pragma unroll
    for (int i = 0; i < 4; ++i)
      least = min(least, min(ScanTile::column_rank(values[0][i]), ScanTile::column_rank(values[2][i])));
    const bool regular = __all_sync(0xFFFFFFFFU, ScanTile::regular_columns(least));
    if (threadIdx.x % 32 == 0) memory.regular[t] = regular;
  });
  if (!time_steps.has_one(r, count)) return;
  const float dt = time_steps.take(a.in, a.parameters, r);
  const float rate = decay_rate(a.parameters.A_log[r.first_head + time_steps.head()]);
  const float decay = expf(rate * dt);
  memory.scalars[time_steps.head()][time_steps.place()] = {dt, decay,
                                                           ScanTile::regular_decay(decay) && dt >= kLeastRegularStep};
}

// A warp's rows through a chunk of tokens. A token's shares of S C are summed among the next one's steps.
template <Dtype kState>
class Rows {
 public:
  __device__ __forceinline__ Rows(const ExactScanArguments& a, const ScanRows& r)
      : saturate_(a.state.storage.overflow == Overflow::saturate) {
    tile_.template load<kState>(a.state.data, r.state_row(head_shape(a.shape)));
  }

  template <int kChunkTokens>
  __device__ __forceinline__ void run(const ScanRows& r, const ScanOperands& operands,
                                      const ExactScanMemory<kChunkTokens>& memory, float* sums, int count) {
    const Scalars* const scalars = memory.scalars[r.warp_head];
    const float* const x = operands.x + r.warp_row;
#pragma unroll 1
    for (int t = 0; t < count; t += kTogether) {
      if constexpr (kTogether == 1) {
        step<true>(scalars[t], true, x + t * kMostRows, operands, t, sums);
      } else {
        const Scalars first = scalars[t];
        const Scalars second = scalars[t + 1];  // of no use where there is no second
        const bool second_regular = second.regular && memory.regular[t + 1];
        step<true>(first, true, x + t * kMostRows, operands, t, sums);
        if (t + 1 == count) break;
        step<false>(second, second_regular, x + (t + 1) * kMostRows, operands, t + 1, sums);
      }
    }
    put_sums(sums, count);
  }

  __device__ __forceinline__ void store(const ExactScanArguments& a, const ScanRows& r) {
    tile_.template store<kState>(a.state.data, r.state_row(head_shape(a.shape)));
    if (a.state.counts != nullptr) add_counts(counts_, a.state.counts);
  }

 private:
  static constexpr int kTogether = kState == Dtype::float32 ? 2 : 1;  // tokens: see ScanTile::count_float32()

  template <bool kLook>
  __device__ __forceinline__ void step(const Scalars& scalars, bool regular, const float* x,
                                       const ScanOperands& operands, int t, float* sums) {
    tile_.multiply(scalars.decay);
    tile_.add_outer(scalars.dt, x, operands.B + t * kScanColumns);
    put_sums(sums, t);
    tile_.dot(operands.C + t * kScanColumns, shares_);
    tile_.template round<kState, kLook, ScanTile::kRows>(saturate_, shares_, regular, settled_, counts_);
  }
  __device__ __forceinline__ void put_sums(float* sums, int place) {
    const float sum = ScanTile::fold_shares(shares_);
    if (ScanTile::writes_row()) sums[place * ScanTile::kWarpRows + ScanTile::own_row()] = sum;
  }

  ScanTile tile_;
  float shares_[ScanTile::kRows] = {};
  bool saturate_;
  bool settled_ = false;
  ThreadCounts counts_;
};

template <Dtype kState, int kChunkTokens>
__global__ void __launch_bounds__(32 * kMaxWarps, kScanBlocks)
    exact_scan_kernel(const __grid_constant__ ExactScanArguments a) {
  extern __shared__ __align__(16) char scan_memory[];
  using Memory = ExactScanMemory<kChunkTokens>;
  auto& memory = *reinterpret_cast<Memory*>(scan_memory);
  const ScanRows r(head_shape(a.shape), a.block, a.cut);
  if (!r.has_slot(a.state)) return fill_rows(a.block, a.out, r);
  const ScanOperands operands(scan_memory + sizeof(Memory), kChunkTokens, r, a.in, a.reads_fours);
  ScanTimeSteps time_steps(kChunkTokens);
  const std::int64_t first_token = r.first_token(a.block);
  const auto tokens = static_cast<int>(a.block.tokens);
  operands.fetch(first_token, min(tokens, kChunkTokens));
  time_steps.fetch(a.in, r, first_token, min(tokens, kChunkTokens));
  Rows<kState> rows(a, r);

  float* const sums = memory.sums[threadIdx.x / 32];
  const float D = a.parameters.D[r.first_head + r.warp_head];
#pragma unroll 1
  for (int first = 0; first < tokens; first += kChunkTokens) {
    const int count = min(kChunkTokens, tokens - first);
    take_chunk<kState>(a, r, operands, time_steps, first_token + first, count, memory);
    __syncthreads();
    const int next = min(kChunkTokens, tokens - first - count);
    operands.fetch(first_token + first + count, next);
    time_steps.fetch(a.in, r, first_token + first + count, next);
    rows.run(r, operands, memory, sums, count);
    __syncwarp();
    write_y(a.out, a.writes_fours, r, D, sums + ScanTile::kWarpRows, operands.x + r.warp_row, first_token + first,
            count);
    __syncthreads();
  }
  rows.store(a, r);
}

template <Dtype kState, int kChunkTokens>
void launch_chunks(cudaStream_t stream, const HeadGrid& grid, const ExactScanArguments& arguments) {
  const std::size_t shared = sizeof(ExactScanMemory<kChunkTokens>) +
                             ScanOperands::bytes(kChunkTokens, grid.cut.rows_per_block, arguments.in.dtype);
  allow_shared(exact_scan_kernel<kState, kChunkTokens>, shared);
  exact_scan_kernel<kState, kChunkTokens><<<grid.blocks, grid.threads, shared, stream>>>(arguments);
  expect_launched("exact, a block of tokens");
}

template <Dtype kState>
void launch_exact(cudaStream_t stream, const HeadGrid& grid, const ExactScanArguments& arguments) {
  if (arguments.in.dtype == Dtype::float32) {
    launch_chunks<kState, chunk_tokens(Dtype::float32)>(stream, grid, arguments);
  } else {
    launch_chunks<kState, chunk_tokens(Dtype::bfloat16)>(stream, grid, arguments);
  }
}

}  // namespace

bool exact_scan(cudaStream_t stream, const Shape& shape, const Block& block, const Inputs& in,
                const Parameters& parameters, const State& state, const Output& out) {
  HeadGrid all;
  if (!scan_grid(head_shape(shape), block, all)) return false;
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
