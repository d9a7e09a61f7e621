// One exact step of a large batch with a 16-bit state of Gated DeltaNet: the state streams through shared memory
// (stream_cuda.cuh) and is written back from registers. The bits are those of exact_cuda.cu.
#include "kernels/delta_rule/stream_backends_cuda.h"
#include "kernels/delta_rule/stream_cuda.cuh"

namespace replayeval::delta_rule::cuda {
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
    float q[1][4];
    float k[1][4];
    operands.prepare(a, unit, token, q, k);
    next();
    sync_compute();

    float own_y = 0.0F;
    StreamTile tile(kTileColumns, kTileRows);
#pragma unroll 1
    for (int t = 0; t < kUnitTiles; ++t) {
      const int h = unit.head_of(t * kTileRows);
      tiles.take(tile);
      tile.multiply(expf(token.log_decay[h]));
      update_rows(tile, k, token.v + t * kTileRows, token.beta[h]);
      keep_own(tile.dot(q), t, own_y);
      store_tile<kState>(a, place, unit, t, tile, counts);
    }
    const int row = own_row();
    store_element(a.out.y, unit.row * a.out.y_stride + unit.first_row + row, own_y, a.out.dtype);
  }
};

}  // namespace

bool exact_stream(cudaStream_t stream, Family family, const Shape& shape, const Block& block, const Inputs& in,
                  const Parameters& parameters, const State& state, const Output& out) {
  if (family != Family::gated_delta || block.tokens != 1 || !streams(head_shape(shape), block.batch)) return false;
  if (state.storage.dtype == Dtype::float32) return false;  // as many bytes in as out: no faster this way
  const StreamExactArguments arguments{
      shape, block, in, parameters, state, out, StreamCut(head_shape(shape), block.batch), reads_fours(in)};
  return state.storage.dtype == Dtype::bfloat16 ? launch_stream<ExactJob<Dtype::bfloat16>>(stream, arguments)
                                                : launch_stream<ExactJob<Dtype::float16>>(stream, arguments);
}

}  // namespace replayeval::delta_rule::cuda
