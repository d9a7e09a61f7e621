// A token's inputs where each key channel has a decay, for the units of stream_cuda.cuh, whose heads may be of several
// groups.
#pragma once

#include "kernels/delta_rule/stream_cuda.cuh"

namespace replayeval::delta_rule::cuda {

// Of one head, four columns a lane: ready for the recurrence, normalised, q scaled.
struct ChannelToken {
  float k[4], q[4], log_decay[4];
};

// What a preparing warp has of a head's token in registers. The arguments also say group_heads, a Divisor, and
// bias_in_fours: whether dt_bias, and by `fours` f too, are read four at a time.
class ChannelOperands : public ColumnOperands {
 public:
  template <class Arguments>
  __device__ __forceinline__ void load(const Arguments& a, const Unit& unit, int head) {
    const struct { int row, group; } where{unit.row, a.group_heads.divide(head)};
    ColumnOperands::load(a, where);
    const std::int64_t row = unit.row;
    f_.load(a.in.f, row * a.in.f_stride + head * kTileColumns + unit_column(), a.in.dtype, a.fours);
    A_log_ = a.parameters.A_log[head];
    bias_.load(a.parameters.dt_bias, head * kTileColumns + unit_column(), Dtype::float32, a.bias_in_fours);
  }

  template <class Arguments>
  __device__ __forceinline__ void take(const Arguments& a, ChannelToken& token) const {
    float q[1][4];
    float k[1][4];
    float f[4];
    float bias[4];
    ColumnOperands::take(a, q, k);
    f_.decode(a.in.dtype, a.fours, f);
    bias_.decode(Dtype::float32, a.bias_in_fours, bias);
    const float rate = expf(A_log_);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      token.k[i] = k[0][i];
      token.q[i] = q[0][i];
      token.log_decay[i] = log_decay_of(f[i], bias[i], rate, a.parameters, a.in.dtype);
    }
  }

 private:
  RawFour f_, bias_;
  float A_log_;
};

}  // namespace replayeval::delta_rule::cuda
