// What Gated DeltaNet's units of stream_cuda.cuh share, exact and replay: a token's inputs.
#pragma once

#include "kernels/delta_rule/launch_cuda.cuh"
#include "kernels/delta_rule/normalise_cuda.cuh"
#include "kernels/stream_cuda.cuh"

namespace replayeval::delta_rule::cuda {

inline constexpr int kMaxUnitHeads = kUnitTiles;

inline bool reads_fours(const Inputs& in) {
  return lies_in_fours(in.q, in.q_stride, in.dtype) && lies_in_fours(in.k, in.k_stride, in.dtype) &&
         lies_in_fours(in.v, in.v_stride, in.dtype);
}

// In shared memory, as float32; k normalised.
struct UnitToken {
  float k[kTileColumns], v[kUnitRows];
  float log_decay[kMaxUnitHeads], beta[kMaxUnitHeads];
};

// A token's inputs in registers, on their way to where they are used. Every warp has q and k; of the eight two have v
// and four a head's gates.
class UnitOperands {
 public:
  template <class Arguments>
  __device__ __forceinline__ void load(const Arguments& a, const Unit& unit) {
    const std::int64_t row = unit.row;
    const int key_column = unit.group * kTileColumns + column();
    q_.load(a.in.q, row * a.in.q_stride + key_column, a.in.dtype, a.fours);
    k_.load(a.in.k, row * a.in.k_stride + key_column, a.in.dtype, a.fours);
    if (has_v()) {
      v_.load(a.in.v, row * a.in.v_stride + unit.first_row + v_row(), a.in.dtype, a.fours);
    } else if (has_gates(unit)) {
      const int head = unit.first_head + gate_head();
      b_.load(a.in.b, row * a.in.b_stride + head, a.in.dtype);
      f_.load(a.in.f, row * a.in.f_stride + head, a.in.dtype);
      A_log_ = a.parameters.A_log[head];
      dt_bias_ = a.parameters.dt_bias[head];
    }
  }
  // Makes them ready for the recurrence: this lane's columns of q and k, the rest to shared memory.
  template <class Arguments>
  __device__ __forceinline__ void prepare(const Arguments& a, const Unit& unit, UnitToken& to, float (&q)[1][4],
                                          float (&k)[1][4]) const {
    q_.decode(a.in.dtype, a.fours, q[0]);
    k_.decode(a.in.dtype, a.fours, k[0]);
    normalise_row(a.parameters, a.in.dtype, kTileColumns, q);
    multiply_row(q, 1.0F / sqrtf(static_cast<float>(kTileColumns)));
    normalise_row(a.parameters, a.in.dtype, kTileColumns, k);
    if (leads()) {
      put(k[0], to.k + column());
    } else if (has_v()) {
      float v[4];
      v_.decode(a.in.dtype, a.fours, v);
      put(v, to.v + v_row());
    } else if (has_gates(unit)) {  // by every lane, the same values
      to.beta[gate_head()] = beta_of(b_.decode(a.in.dtype), a.parameters, a.in.dtype);
      to.log_decay[gate_head()] = log_decay_of(f_.decode(a.in.dtype), dt_bias_, expf(A_log_), a.parameters, a.in.dtype);
    }
  }

  // Whole warps.
  __device__ static __forceinline__ bool leads() { return warp() == 0; }
  __device__ static __forceinline__ bool has_gates(const Unit& unit) {
    return warp() >= kFirstGateWarp && gate_head() < unit.heads;
  }
  __device__ static __forceinline__ int gate_head() { return warp() - kFirstGateWarp; }

 private:
  static constexpr int kFirstGateWarp = kComputeWarps - kMaxUnitHeads;

  __device__ static __forceinline__ int warp() { return static_cast<int>(threadIdx.x) / 32; }
  __device__ static __forceinline__ int column() { return static_cast<int>(threadIdx.x) % 32 * 4; }
  __device__ static __forceinline__ bool has_v() { return warp() == 2 || warp() == 3; }
  __device__ static __forceinline__ int v_row() { return (warp() - 2) * 128 + column(); }
  __device__ static __forceinline__ void put(const float (&values)[4], float* to) {
    *reinterpret_cast<float4*>(to) = make_float4(values[0], values[1], values[2], values[3]);
  }

  RawFour q_, k_, v_;
  RawElement b_, f_;
  float A_log_, dt_bias_;
};

// With S decayed: d = beta (v - S k), S += d k^T (token_cuda.cuh's update_tile). v: of the tile's rows.
__device__ __forceinline__ void update_rows(StreamTile& tile, const float (&k)[1][4], const float* v, float beta) {
  const float held = tile.dot(k);
  const float d = beta * (v[tile.block_row + StreamTile::own_row()] - held);
  float rows[StreamTile::kRows];
  StreamTile::spread(d, rows);
  tile.add_outer(rows, k);
}

}  // namespace replayeval::delta_rule::cuda
