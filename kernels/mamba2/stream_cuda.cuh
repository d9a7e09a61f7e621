// What Mamba-2's units of stream_cuda.cuh share, exact and replay: a token's inputs.
#pragma once

#include "kernels/mamba2/launch_cuda.cuh"
#include "kernels/stream_cuda.cuh"

namespace replayeval::mamba2::cuda {

// In shared memory, as float32. D: of the unit's heads.
struct UnitToken {
  float B[kTileColumns], C[kTileColumns], x[kUnitRows], D[kMaxUnitHeads];
};

// What the preparing warps have of a token in registers: B and C, four columns a lane.
class ColumnOperands {
 public:
  template <class Arguments>
  __device__ __forceinline__ void load(const Arguments& a, const Unit& unit) {
    const std::int64_t row = unit.row;
    const int column = unit.group * kTileColumns + unit_column();
    B_.load(a.in.B, row * a.in.B_stride + column, a.in.dtype, a.fours);
    C_.load(a.in.C, row * a.in.C_stride + column, a.in.dtype, a.fours);
  }
  // To shared memory, and here.
  template <class Arguments>
  __device__ __forceinline__ void take(const Arguments& a, UnitToken& to, float (&B)[1][4], float (&C)[1][4]) const {
    B_.decode(a.in.dtype, a.fours, B[0]);
    C_.decode(a.in.dtype, a.fours, C[0]);
    put(B[0], to.B + unit_column());
    put(C[0], to.C + unit_column());
  }

 private:
  RawFour B_, C_;
};

// x, eight rows a lane, and the scalars of the lane's head.
class RowOperands {
 public:
  template <class Arguments>
  __device__ __forceinline__ void load(const Arguments& a, const Unit& unit) {
    const std::int64_t row = unit.row;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      x_[i].load(a.in.x, row * a.in.x_stride + unit.first_row + 128 * i + unit_column(), a.in.dtype, a.fours);
    }
    const int head = unit.first_head + min(lane_head(), unit.heads - 1);
    dt_.load(a.in.dt, row * a.in.dt_stride + head, a.in.dtype);
    A_log_ = a.parameters.A_log[head];
    dt_bias_ = a.parameters.dt_bias[head];
    D_ = a.parameters.D[head];
  }
  // To shared memory.
  template <class Arguments>
  __device__ __forceinline__ void take(const Arguments& a, UnitToken& to) const {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      float x[4];
      x_[i].decode(a.in.dtype, a.fours, x);
      put(x, to.x + 128 * i + unit_column());
    }
    to.D[lane_head()] = D_;  // by a head's lanes, the same value
  }

  // Of the lane's head.
  template <class Arguments>
  __device__ __forceinline__ float dt(const Arguments& a) const {
    return time_step(dt_.decode(a.in.dtype), dt_bias_, a.parameters.dt_min, a.parameters.dt_max);
  }
  __device__ __forceinline__ float rate() const { return decay_rate(A_log_); }

 private:
  RawFour x_[2];
  RawElement dt_;
  float A_log_, dt_bias_, D_;
};

}  // namespace replayeval::mamba2::cuda
