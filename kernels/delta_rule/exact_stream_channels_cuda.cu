// One exact step of Kimi Delta Attention: as exact_stream_cuda.cu, with a decay for each key channel. Each of a unit's
// heads, one or two, has a preparing warp. The bits are those of exact_cuda.cu.
#include "kernels/delta_rule/stream_backends_cuda.h"
#include "kernels/delta_rule/stream_channels_cuda.cuh"

namespace replayeval::delta_rule::cuda {
namespace {

struct ChannelsExactArguments {
  Shape shape;
  Block block;
  Inputs in;
  Parameters parameters;
  State state;
  Output out;
  StreamCut cut;
  bool fours, bias_in_fours;
  Divisor group_heads;
};

constexpr int kMostHeads = 2;  // of a unit

// Measured on an H200: fewer units are cut finer by the other kernel, which with many of a float32 state, as many bytes
// in as out, is as fast.
constexpr std::int64_t kLeastUnits = 128;
constexpr std::int64_t kLeastFloat32Units = 64;
constexpr int kMostFloat32Units = 512;

template <Dtype kStateDtype>
struct ChannelsExactJob : WithoutRing<ChannelsExactArguments> {
  static constexpr Dtype kState = kStateDtype;
  static constexpr int kColumnWarps = kMostHeads;
  using Arguments = ChannelsExactArguments;

  struct Window {
    UnitToken token;
    float decay[kMostHeads][kTileColumns], k[kMostHeads][kTileColumns], q[kMostHeads][kTileColumns];
  };
  struct FlushMemory {};

  class ColumnPart : public PartWithoutRing<ChannelOperands> {
   public:
    __device__ __forceinline__ void load(const Arguments& a, const Unit& unit) {
      ChannelOperands::load(a, unit, unit.first_head + min(column_warp(), unit.heads - 1));
    }
    __device__ __forceinline__ Ready ready(const Arguments& a, Window& window) const {
      ChannelToken token;
      this->take(a, token);
      float decay[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) decay[i] = expf(token.log_decay[i]);
      put(decay, window.decay[column_warp()] + unit_column());
      put(token.k, window.k[column_warp()] + unit_column());
      put(token.q, window.q[column_warp()] + unit_column());
      return {};
    }
  };
  class RowPart : public PartWithoutRing<RowOperandsOf<true>> {
   public:
    __device__ __forceinline__ Ready ready(const Arguments& a, Window& window) const {
      this->take(a, window.token);
      return {};
    }
  };

  __device__ static __forceinline__ void run(const Arguments& a, const Unit& unit, const Place& place,
                                             const char* /*memory*/, Tiles<kState>& tiles, const Window& window,
                                             FlushMemory& /*memory*/, ThreadCounts& counts) {
    float own_y = 0.0F;
    StreamTile tile = unit_tile();
#pragma unroll 1
    for (int t = 0; t < kUnitTiles; ++t) {
      const int h = unit.head_of(t * kTileRows);
      float k[1][4];
      load4<Dtype::float32>(window.k[h], unit_column(), k[0]);
      tiles.load(tile);
      tile.multiply_columns(window.decay[h]);
      update_rows(tile, k, window.token.v + t * kTileRows, window.token.beta[h]);
      keep_own(tile.dot(window.q[h]), t, own_y);
      tiles.release();
      store_tile<kState>(a, place, unit, t, tile, counts);
    }
    store_element(a.out.y, unit.row * a.out.y_stride + unit.first_row + own_row(), own_y, a.out.dtype);
  }
};

}  // namespace

bool exact_stream_channels(cudaStream_t stream, const Shape& shape, const Block& block, const Inputs& in,
                           const Parameters& parameters, const State& state, const Output& out) {
  HeadShape heads = head_shape(shape);
  const Divisor group_heads(heads.heads / heads.groups);
  heads.groups = 1;  // a unit may have heads of several
  const bool float32 = state.storage.dtype == Dtype::float32;
  if (block.tokens != 1 || kUnitRows / heads.rows > kMostHeads ||
      !streams(heads, block.batch, float32 ? kLeastFloat32Units : kLeastUnits)) {
    return false;
  }
  const ChannelsExactArguments arguments{shape,
                                         block,
                                         in,
                                         parameters,
                                         state,
                                         out,
                                         StreamCut(heads, block.batch),
                                         reads_fours(in) && lies_in_fours(in.f, in.f_stride, in.dtype),
                                         lies_in_fours(parameters.dt_bias, 0, Dtype::float32),
                                         group_heads};
  if (float32) {
    return arguments.cut.units <= kMostFloat32Units &&
           launch_stream<ChannelsExactJob<Dtype::float32>>(stream, arguments);
  }
  return state.storage.dtype == Dtype::bfloat16 ? launch_stream<ChannelsExactJob<Dtype::bfloat16>>(stream, arguments)
                                                : launch_stream<ChannelsExactJob<Dtype::float16>>(stream, arguments);
}

}  // namespace replayeval::delta_rule::cuda
