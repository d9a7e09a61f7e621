// What the families' units of stream_cuda.cuh share, exact and replay: a token's inputs.
#pragma once

#include "kernels/delta_rule/launch_cuda.cuh"
#include "kernels/delta_rule/normalise_cuda.cuh"
#include "kernels/stream_cuda.cuh"

namespace replayeval::delta_rule::cuda {

inline bool reads_fours(const Inputs& in) {
  return lies_in_fours(in.q, in.q_stride, in.dtype) && lies_in_fours(in.k, in.k_stride, in.dtype) &&
         lies_in_fours(in.v, in.v_stride, in.dtype);
}

// In shared memory, as float32, but for q and k.
struct UnitToken {
  float v[kUnitRows];
  float log_decay[kMaxUnitHeads], beta[kMaxUnitHeads];
};

// What the preparing warps have of a token in registers: q and k, four columns a lane.
class ColumnOperands {
 public:
  // unit: whose row and group these are.
  template <class Arguments, class Where>
  __device__ __forceinline__ void load(const Arguments& a, const Where& unit) {
    const std::int64_t row = unit.row;
    const int column = unit.group * kTileColumns + unit_column();
    q_.load(a.in.q, row * a.in.q_stride + column, a.in.dtype, a.fours);
    k_.load(a.in.k, row * a.in.k_stride + column, a.in.dtype, a.fours);
  }
  // Ready for the recurrence: normalised, q scaled.
  template <class Arguments>
  __device__ __forceinline__ void take(const Arguments& a, float (&q)[1][4], float (&k)[1][4]) const {
    q_.decode(a.in.dtype, a.fours, q[0]);
    k_.decode(a.in.dtype, a.fours, k[0]);
    normalise_rows(a.parameters, a.in.dtype, kTileColumns, q, k);
    multiply_row(q, 1.0F / sqrtf(static_cast<float>(kTileColumns)));
  }

 private:
  RawFour q_, k_;
};

// v, eight rows a lane, and the gates of the lane's head: beta, and g unless each key channel has one (kChannels).
template <bool kChannels>
class RowOperandsOf {
 public:
  template <class Arguments>
  __device__ __forceinline__ void load(const Arguments& a, const Unit& unit) {
    const std::int64_t row = unit.row;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      v_[i].load(a.in.v, row * a.in.v_stride + unit.first_row + 128 * i + unit_column(), a.in.dtype, a.fours);
    }
    const int head = unit.first_head + min(lane_head(), unit.heads - 1);
    b_.load(a.in.b, row * a.in.b_stride + head, a.in.dtype);
    if constexpr (!kChannels) {
      f_.load(a.in.f, row * a.in.f_stride + head, a.in.dtype);
      A_log_ = a.parameters.A_log[head];
      dt_bias_ = a.parameters.dt_bias[head];
    }
  }
  // Ready for the recurrence, to shared memory; returns the log decay of the lane's head, if it has one.
  template <class Arguments>
  __device__ __forceinline__ float take(const Arguments& a, UnitToken& to) const {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      float v[4];
      v_[i].decode(a.in.dtype, a.fours, v);
      put(v, to.v + 128 * i + unit_column());
    }
    if constexpr (kChannels) {
      to.beta[lane_head()] = beta_of(b_.decode(a.in.dtype), a.parameters, a.in.dtype);
      return 0.0F;
    }
    const float log_decay = log_decay_of(f_.decode(a.in.dtype), dt_bias_, expf(A_log_), a.parameters, a.in.dtype);
    to.beta[lane_head()] = beta_of(b_.decode(a.in.dtype), a.parameters, a.in.dtype);  // a head's lanes: the same
    to.log_decay[lane_head()] = log_decay;
    return log_decay;
  }

 private:
  RawFour v_[2];
  RawElement b_, f_;
  float A_log_, dt_bias_;
};
using RowOperands = RowOperandsOf<false>;

// With S decayed: d = beta (v - S k), S += d k^T (token_cuda.cuh's update_tile). v: of the tile's rows.
__device__ __forceinline__ void update_rows(StreamTile& tile, const float (&k)[1][4], const float* v, float beta) {
  const float held = tile.dot(k);
  const float d = beta * (v[tile.block_row + StreamTile::own_row()] - held);
  float rows[StreamTile::kRows];
  StreamTile::spread(d, rows);
  tile.add_outer(rows, k);
}

}  // namespace replayeval::delta_rule::cuda
