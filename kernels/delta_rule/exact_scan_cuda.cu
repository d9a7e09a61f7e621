// The exact executor over a block of tokens at the tuned key dim. The bits are those of exact_cuda.cu.
#include "kernels/delta_rule/scan_backends_cuda.h"
#include "kernels/delta_rule/scan_cuda.cuh"

namespace replayeval::delta_rule::cuda {
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

struct Scalars {
  float beta, decay;
  bool regular;  // as ScanTile::round() asks
};

// In shared memory, before the operands.
struct ExactScanMemory {
  Scalars scalars[kMaxWarps][kChunkTokens];                         // by the block's heads
  bool regular[kChunkTokens];                                       // of k and of channels' decays
  float sums[kMaxWarps][(kChunkTokens + 1) * ScanTile::kWarpRows];  // those of a token after its place
};

// The chunk's operands as the tokens' steps take them.
template <bool kChannels>
__device__ __forceinline__ void take_chunk(const ExactScanArguments& a, const ScanRows& r,
                                           const ScanOperands<kChannels>& operands, const ScanGates<kChannels>& gates,
                                           std::int64_t token, int count, ExactScanMemory& memory) {
  operands.take(token, count, a.parameters, [&](int t, const float(&k)[4], const float(&decay)[4]) {
    std::uint32_t least = 0xFFFFFFFFU;
#pragma unroll
    for (int i = 0; i < 4; ++i) least = min(least, ScanTile::column_rank(k[i]));
    bool regular = ScanTile::regular_columns(least);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if (kChannels) regular = regular && ScanTile::regular_decay(decay[i]);
    }
    regular = __all_sync(0xFFFFFFFFU, regular);
    if (threadIdx.x % 32 == 0) memory.regular[t] = regular;
  });
  if (!gates.has_one(r, count)) return;
  const float decay = kChannels ? 1.0F : gates.decay(a.in, a.parameters, r);
  memory.scalars[gates.head()][gates.place()] = {gates.beta(a.in, a.parameters), decay, ScanTile::regular_decay(decay)};
}

// A warp's rows through a chunk of tokens. A token's shares of S q are summed among the next one's steps.
template <Dtype kState, bool kChannels>
class Rows {
 public:
  __device__ __forceinline__ Rows(const ExactScanArguments& a, const ScanRows& r)
      : saturate_(a.state.storage.overflow == Overflow::saturate) {
    tile_.template load<kState>(a.state.data, r.state_row(head_shape(a.shape)));
  }

  __device__ __forceinline__ void run(const ScanRows& r, const ScanOperands<kChannels>& operands,
                                      const ExactScanMemory& memory, float* sums, int count) {
    const Scalars* const scalars = memory.scalars[r.warp_head];
    const float* const v = operands.v + r.warp_row + ScanTile::own_row();
#pragma unroll 1
    for (int t = 0; t < count; t += kTogether) {
      if constexpr (kTogether == 1) {
        step<true>(scalars[t], true, v[t * kMostRows], operands, t, sums);
      } else {
        const Scalars first = scalars[t];
        const Scalars second = scalars[t + 1];  // of no use where there is no second
        const bool second_regular = second.regular && memory.regular[t + 1];
        step<true>(first, true, v[t * kMostRows], operands, t, sums);
        if (t + 1 == count) break;
        step<false>(second, second_regular, v[(t + 1) * kMostRows], operands, t + 1, sums);
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
  __device__ __forceinline__ void step(const Scalars& scalars, bool regular, float v,
                                       const ScanOperands<kChannels>& operands, int t, float* sums) {
    const float* const k = operands.k + t * kScanColumns;
    if constexpr (kChannels) {
      tile_.multiply_columns(operands.decay + t * kScanColumns);
    } else {
      tile_.multiply(scalars.decay);
    }
    float held[ScanTile::kRows];
    tile_.dot(k, held);
    put_sums(sums, t);
    float d[ScanTile::kRows];
    ScanTile::spread(scalars.beta * (v - ScanTile::fold_shares(held)), d);
    tile_.add_outer(d, k);
    tile_.dot(operands.q + t * kScanColumns, shares_);
#pragma unroll
    for (int row = 0; row < ScanTile::kRows; ++row) regular = regular && ScanTile::regular_factor(d[row]);
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

template <Dtype kState, bool kChannels>
__global__ void __launch_bounds__(32 * kMaxWarps, kScanBlocks)
    exact_scan_kernel(const __grid_constant__ ExactScanArguments a) {
  extern __shared__ __align__(16) char scan_memory[];
  auto& memory = *reinterpret_cast<ExactScanMemory*>(scan_memory);
  const ScanRows r(head_shape(a.shape), a.block, a.cut);
  if (!r.has_slot(a.state)) return fill_rows(a.block, a.out, r);
  const ScanOperands<kChannels> operands(scan_memory + sizeof(ExactScanMemory), kChunkTokens, r, a.in, a.reads_fours);
  ScanGates<kChannels> gates(kChunkTokens);
  const std::int64_t first_token = r.first_token(a.block);
  const auto tokens = static_cast<int>(a.block.tokens);
  operands.fetch(first_token, min(tokens, kChunkTokens));
  gates.fetch(a.in, r, first_token, min(tokens, kChunkTokens));
  Rows<kState, kChannels> rows(a, r);

  float* const sums = memory.sums[threadIdx.x / 32];
#pragma unroll 1
  for (int first = 0; first < tokens; first += kChunkTokens) {
    const int count = min(kChunkTokens, tokens - first);
    take_chunk<kChannels>(a, r, operands, gates, first_token + first, count, memory);
    __syncthreads();
    const int next = min(kChunkTokens, tokens - first - count);
    operands.fetch(first_token + first + count, next);
    gates.fetch(a.in, r, first_token + first + count, next);
    rows.run(r, operands, memory, sums, count);
    __syncwarp();
    write_rows(a.out, a.writes_fours, r, sums + ScanTile::kWarpRows, first_token + first, count,
               [](int /*t*/, int /*row*/, float(&)[4]) {});
    __syncthreads();
  }
  rows.store(a, r);
}

template <Dtype kState, bool kChannels>
void launch_exact(cudaStream_t stream, const HeadGrid& grid, const ExactScanArguments& arguments) {
  const std::size_t shared = sizeof(ExactScanMemory) +
                             ScanOperands<kChannels>::bytes(kChunkTokens, grid.cut.rows_per_block, arguments.in.dtype);
  allow_shared(exact_scan_kernel<kState, kChannels>, shared);
  exact_scan_kernel<kState, kChannels><<<grid.blocks, grid.threads, shared, stream>>>(arguments);
  expect_launched("delta_rule exact, a block of tokens");
}

template <bool kChannels>
void launch_exact_of(cudaStream_t stream, const HeadGrid& grid, const ExactScanArguments& arguments) {
  const Dtype state = arguments.state.storage.dtype;
  if (state == Dtype::float32) return launch_exact<Dtype::float32, kChannels>(stream, grid, arguments);
  if (state == Dtype::bfloat16) return launch_exact<Dtype::bfloat16, kChannels>(stream, grid, arguments);
  launch_exact<Dtype::float16, kChannels>(stream, grid, arguments);
}

}  // namespace

bool exact_scan(cudaStream_t stream, Family family, const Shape& shape, const Block& block, const Inputs& in,
                const Parameters& parameters, const State& state, const Output& out) {
  HeadGrid all;
  if (!scan_grid(head_shape(shape), block, all)) return false;
  const bool channels = family == Family::kda;
  if (channels && shape.value_dim % all.cut.rows_per_block != 0) return false;
  for_batch(all, block.batch, [&](const HeadGrid& grid) {
    const ExactScanArguments arguments{
        shape, block, in, parameters, state, out, grid.cut, scans_fours(in), writes_fours(out)};
    (channels ? launch_exact_of<true> : launch_exact_of<false>)(stream, grid, arguments);
  });
  return true;
}

}  // namespace replayeval::delta_rule::cuda
