// One exact step of a large batch with a 16-bit state: the state streams through shared memory (stream_cuda.cuh) and is
// written back from registers. The bits are those of exact_cuda.cu.
#include "kernels/mamba2/stream_backends_cuda.h"
#include "kernels/mamba2/stream_cuda.cuh"

namespace replayeval::mamba2::cuda {
namespace {

struct StreamExactArguments {
  Shape shape;
  Block block;
  Inputs in;
  Parameters parameters;
  State state;
  Output out;
  StreamCut cut;
  bool fours;  // reads_fours()
};

template <Dtype kStateDtype>
struct ExactJob {
  static constexpr Dtype kState = kStateDtype;
  using Arguments = StreamExactArguments;
  using Token = UnitOperands;

  struct Shared {
    UnitToken token[2];
    float dt[2][kMaxUnitHeads], decay[2][kMaxUnitHeads];
  };

  __device__ static __forceinline__ int cursor(const Arguments& /*a*/, int /*slot*/) { return 0; }
  __device__ static __forceinline__ unsigned operand_bytes(const Arguments& /*a*/, int /*cursor*/) { return 0; }
  __device__ static __forceinline__ void copy_operands(const Arguments& /*a*/, const Unit& /*unit*/,
                                                       const Place& /*place*/, char* /*to*/, Barrier& /*barrier*/) {}

  template <class Next>
  __device__ static __forceinline__ void run(const Arguments& a, const Unit& unit, const Place& place, Token& operands,
                                             const Next& next, const char* /*memory*/, Tiles<kState>& tiles,
                                             Shared& shared, int parity, ThreadCounts& counts) {
    UnitToken& token = shared.token[parity];
    float B[4];
    float C[1][4];
    operands.prepare(a, token, B, C);
    if (Token::has_dt(unit)) {
      const float dt = operands.dt(a);
      shared.dt[parity][Token::dt_head()] = dt;  // by every lane of the warp, the same value
      shared.decay[parity][Token::dt_head()] = expf(operands.rate() * dt);
    }
    const float D = operands.D();
    next();
    sync_compute();

    float own_sum = 0.0F;
    StreamTile tile(kTileColumns, kTileRows);
#pragma unroll 1
    for (int t = 0; t < kUnitTiles; ++t) {
      const int row = t * kTileRows + tile.block_row;
      tiles.take(tile);
      tile.multiply(shared.decay[parity][unit.head_of(row)]);
      tile.add_outer(shared.dt[parity][unit.head_of(row)], token.x + row, token.B);
      keep_own(tile.dot(C), t, own_sum);
      store_tile<kState>(a, place, unit, t, tile, counts);
    }
    const int row = own_row();
    store_element(a.out.y, unit.row * a.out.y_stride + unit.first_row + row, fmaf(D, token.x[row], own_sum),
                  a.out.dtype);
  }
};

}  // namespace

bool exact_stream(cudaStream_t stream, const Shape& shape, const Block& block, const Inputs& in,
                  const Parameters& parameters, const State& state, const Output& out) {
  if (block.tokens != 1 || !streams(head_shape(shape), block.batch)) return false;
  if (state.storage.dtype == Dtype::float32) return false;  // as many bytes in as out: no faster this way
  const StreamExactArguments arguments{
      shape, block, in, parameters, state, out, StreamCut(head_shape(shape), block.batch), reads_fours(in)};
  return state.storage.dtype == Dtype::bfloat16 ? launch_stream<ExactJob<Dtype::bfloat16>>(stream, arguments)
                                                : launch_stream<ExactJob<Dtype::float16>>(stream, arguments);
}

}  // namespace replayeval::mamba2::cuda
