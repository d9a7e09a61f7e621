// One exact step of Gated DeltaNet: the state streams through shared memory (stream_cuda.cuh) and is written back from
// registers. The bits are those of exact_cuda.cu.
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
    float q[kTileColumns], k[kTileColumns];
  };
  struct FlushMemory {};

  class ColumnPart : public PartWithoutRing<ColumnOperands> {
   public:
    __device__ __forceinline__ Ready ready(const Arguments& a, Window& window) const {
      float q[1][4];
      float k[1][4];
      this->take(a, q, k);
      put(q[0], window.q + unit_column());
      put(k[0], window.k + unit_column());
      return {};
    }
  };
  class RowPart : public PartWithoutRing<RowOperands> {
   public:
    __device__ __forceinline__ Ready ready(const Arguments& a, Window& window) const {
      this->take(a, window.token);
      return {};
    }
  };

  __device__ static __forceinline__ void run(const Arguments& a, const Unit& unit, const Place& place,
                                             const char* /*memory*/, Tiles<kState>& tiles, const Window& window,
                                             FlushMemory& /*memory*/, ThreadCounts& counts) {
    const UnitToken& token = window.token;
    float k[1][4];
    load4<Dtype::float32>(window.k, StreamTile::column_of(0), k[0]);
    float own_y = 0.0F;
    StreamTile tile = unit_tile();
#pragma unroll 1
    for (int t = 0; t < kUnitTiles; ++t) {
      const int h = unit.head_of(t * kTileRows);
      tiles.load(tile);
      tile.multiply(expf(token.log_decay[h]));
      update_rows(tile, k, token.v + t * kTileRows, token.beta[h]);
      keep_own(tile.dot(window.q), t, own_y);
      tiles.release();
      store_tile<kState>(a, place, unit, t, tile, counts);
    }
    store_element(a.out.y, unit.row * a.out.y_stride + unit.first_row + own_row(), own_y, a.out.dtype);
  }
};

}  // namespace

bool exact_stream(cudaStream_t stream, Family family, const Shape& shape, const Block& block, const Inputs& in,
                  const Parameters& parameters, const State& state, const Output& out) {
  if (family == Family::kda) return exact_stream_channels(stream, shape, block, in, parameters, state, out);
  if (block.tokens != 1 || !streams(head_shape(shape), block.batch, kLeastUnits)) return false;
  const StreamExactArguments arguments{
      shape, block, in, parameters, state, out, StreamCut(head_shape(shape), block.batch), reads_fours(in)};
  if (state.storage.dtype == Dtype::float32) {
    return arguments.cut.units <= kMostFloat32Units && launch_stream<ExactJob<Dtype::float32>>(stream, arguments);
  }
  return state.storage.dtype == Dtype::bfloat16 ? launch_stream<ExactJob<Dtype::bfloat16>>(stream, arguments)
                                                : launch_stream<ExactJob<Dtype::float16>>(stream, arguments);
}

}  // namespace replayeval::delta_rule::cuda
