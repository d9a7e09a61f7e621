// One exact step: the state streams through shared memory (stream_cuda.cuh) and is written back from registers. The
// bits are those of exact_cuda.cu.
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

// Measured on an H200: fewer units are cut finer by the other kernel, which with many of a float32 state, as many bytes
// in as out, is as fast.
constexpr std::int64_t kLeastUnits = 64;
constexpr int kMostFloat32Units = 512;

template <Dtype kStateDtype>
struct ExactJob : WithoutRing<StreamExactArguments> {
  static constexpr Dtype kState = kStateDtype;
  using Arguments = StreamExactArguments;

  struct Window {
    UnitToken token;
    float dt[kMaxUnitHeads], decay[kMaxUnitHeads];
  };
  struct FlushMemory {};

  class ColumnPart : public PartWithoutRing<ColumnOperands> {
   public:
    __device__ __forceinline__ Ready ready(const Arguments& a, Window& window) const {
      float B[1][4];
      float C[1][4];
      this->take(a, window.token, B, C);
      return {};
    }
  };
  class RowPart : public PartWithoutRing<RowOperands> {
   public:
    __device__ __forceinline__ Ready ready(const Arguments& a, Window& window) const {
      this->take(a, window.token);
      const float dt = this->dt(a);
      window.dt[lane_head()] = dt;  // by a head's lanes, the same value
      window.decay[lane_head()] = expf(this->rate() * dt);
      return {};
    }
  };

  __device__ static __forceinline__ void run(const Arguments& a, const Unit& unit, const Place& place,
                                             const char* /*memory*/, Tiles<kState>& tiles, const Window& window,
                                             FlushMemory& /*memory*/, ThreadCounts& counts) {
    const UnitToken& token = window.token;
    float own_sum = 0.0F;
    StreamTile tile = unit_tile();
#pragma unroll 1
    for (int t = 0; t < kUnitTiles; ++t) {
      const int row = t * kTileRows + tile.block_row;
      const int k = unit.head_of(row);
      tiles.load(tile);
      tile.multiply(window.decay[k]);
      tile.add_outer(window.dt[k], token.x + row, token.B);
      keep_own(tile.dot(token.C), t, own_sum);
      tiles.release();
      store_tile<kState>(a, place, unit, t, tile, counts);
    }
    const int row = own_row();
    store_element(a.out.y, unit.row * a.out.y_stride + unit.first_row + row,
                  fmaf(token.D[unit.head_of(row)], token.x[row], own_sum), a.out.dtype);
  }
};

}  // namespace

bool exact_stream(cudaStream_t stream, const Shape& shape, const Block& block, const Inputs& in,
                  const Parameters& parameters, const State& state, const Output& out) {
  if (block.tokens != 1 || !streams(head_shape(shape), block.batch, kLeastUnits)) return false;
  const StreamExactArguments arguments{
      shape, block, in, parameters, state, out, StreamCut(head_shape(shape), block.batch), reads_fours(in)};
  if (state.storage.dtype == Dtype::float32) {
    return arguments.cut.units <= kMostFloat32Units && launch_stream<ExactJob<Dtype::float32>>(stream, arguments);
  }
  return state.storage.dtype == Dtype::bfloat16 ? launch_stream<ExactJob<Dtype::bfloat16>>(stream, arguments)
                                                : launch_stream<ExactJob<Dtype::float16>>(stream, arguments);
}

}  // namespace replayeval::mamba2::cuda
