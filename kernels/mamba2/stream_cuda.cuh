// What Mamba-2's units of stream_cuda.cuh share, exact and replay: a token's inputs.
#pragma once

#include "kernels/mamba2/launch_cuda.cuh"
#include "kernels/stream_cuda.cuh"

namespace replayeval::mamba2::cuda {

inline constexpr int kMaxUnitHeads = kUnitTiles;

inline bool reads_fours(const Inputs& in) {
  return lies_in_fours(in.x, in.x_stride, in.dtype) && lies_in_fours(in.B, in.B_stride, in.dtype) &&
         lies_in_fours(in.C, in.C_stride, in.dtype);
}

// In shared memory, as float32.
struct UnitToken {
  float B[kTileColumns], x[kUnitRows];
};

// A token's inputs in registers, on their way to where they are used. Every warp has C; of the eight one has B, two x
// and four a head's dt; each thread also has D of the row that it finishes.
class UnitOperands {
 public:
  template <class Arguments>
  __device__ __forceinline__ void load(const Arguments& a, const Unit& unit) {
    const std::int64_t row = unit.row;
    const int group_column = unit.group * kTileColumns + column();
    C_.load(a.in.C, row * a.in.C_stride + group_column, a.in.dtype, a.fours);
    if (has_B()) {
      four_.load(a.in.B, row * a.in.B_stride + group_column, a.in.dtype, a.fours);
    } else if (has_x()) {
      four_.load(a.in.x, row * a.in.x_stride + unit.first_row + x_row(), a.in.dtype, a.fours);
    } else if (has_dt(unit)) {
      const int head = unit.first_head + dt_head();
      dt_.load(a.in.dt, row * a.in.dt_stride + head, a.in.dtype);
      A_log_ = a.parameters.A_log[head];
      dt_bias_ = a.parameters.dt_bias[head];
    }
    D_ = a.parameters.D[unit.first_head + unit.head_of(own_tile() * kTileRows)];
  }
  // B and x to shared memory; this lane's columns of B, in the warp that has it, and of C.
  template <class Arguments>
  __device__ __forceinline__ void prepare(const Arguments& a, UnitToken& to, float (&B)[4], float (&C)[1][4]) const {
    C_.decode(a.in.dtype, a.fours, C[0]);
    four_.decode(a.in.dtype, a.fours, B);
    if (has_B()) {
      *reinterpret_cast<float4*>(to.B + column()) = make_float4(B[0], B[1], B[2], B[3]);
    } else if (has_x()) {
      *reinterpret_cast<float4*>(to.x + x_row()) = make_float4(B[0], B[1], B[2], B[3]);
    }
  }

  // Whole warps.
  __device__ static __forceinline__ bool has_B() { return warp() == 0; }
  __device__ static __forceinline__ bool has_dt(const Unit& unit) {
    return warp() >= kFirstDtWarp && dt_head() < unit.heads;
  }
  __device__ static __forceinline__ int dt_head() { return warp() - kFirstDtWarp; }

  // The same in every lane.
  template <class Arguments>
  __device__ __forceinline__ float dt(const Arguments& a) const {
    return time_step(dt_.decode(a.in.dtype), dt_bias_, a.parameters.dt_min, a.parameters.dt_max);
  }
  __device__ __forceinline__ float rate() const { return decay_rate(A_log_); }
  // Of the lane's own row.
  __device__ __forceinline__ float D() const { return D_; }

 private:
  static constexpr int kFirstDtWarp = kComputeWarps - kMaxUnitHeads;

  __device__ static __forceinline__ int warp() { return static_cast<int>(threadIdx.x) / 32; }
  __device__ static __forceinline__ int column() { return static_cast<int>(threadIdx.x) % 32 * 4; }
  __device__ static __forceinline__ bool has_x() { return warp() == 2 || warp() == 3; }
  __device__ static __forceinline__ int x_row() { return (warp() - 2) * 128 + column(); }

  RawFour four_, C_;
  RawElement dt_;
  float A_log_, dt_bias_, D_;
};

}  // namespace replayeval::mamba2::cuda
