// What Gated DeltaNet's units of stream_cuda.cuh share, exact and replay: where a unit's value heads lie, and a token's
// inputs.
#pragma once

#include "kernels/delta_rule/launch_cuda.cuh"
#include "kernels/delta_rule/normalise_cuda.cuh"
#include "kernels/stream_cuda.cuh"

namespace replayeval::delta_rule::cuda {

inline constexpr int kMaxUnitHeads = kUnitTiles;

// A unit's value heads: all rows of kUnitRows / value_dim heads of a key head.
struct UnitHeads {
  int first, count, key_head;
  bool leads_group;

  __device__ __forceinline__ UnitHeads(const Shape& shape, const Unit& unit) {
    const auto V = static_cast<int>(shape.value_dim);
    const auto heads_per_key = static_cast<int>(shape.num_value_heads) / static_cast<int>(shape.num_key_heads);
    first = unit.first_row / V;
    count = kUnitRows / V;
    key_head = first / heads_per_key;
    leads_group = first == key_head * heads_per_key;
  }
};

inline bool streams(const Shape& shape) {
  const bool whole_tiles = shape.value_dim % kTileRows == 0 && kUnitRows % shape.value_dim == 0;
  return shape.key_dim == kTileColumns && whole_tiles &&
         shape.num_value_heads / shape.num_key_heads * shape.value_dim % kUnitRows == 0;
}

inline StreamCut stream_cut(const Shape& shape, std::int64_t batch) {
  StreamCut cut;
  cut.units_per_row = static_cast<int>(shape.num_value_heads * shape.value_dim / kUnitRows);
  cut.units = static_cast<int>(batch * cut.units_per_row);
  return cut;
}

// In shared memory, as float32; q and k normalised, q scaled.
struct UnitToken {
  float q[kTileColumns], k[kTileColumns], v[kUnitRows];
  float log_decay[kMaxUnitHeads], beta[kMaxUnitHeads];
};

// A token's inputs on their way to shared memory. Of the eight warps one has q, one k, two v and four a head's gates.
class UnitOperands {
 public:
  template <class Arguments>
  __device__ __forceinline__ void load(const Arguments& a, const Unit& unit) {
    const UnitHeads heads(a.shape, unit);
    const std::int64_t row = unit.row;
    if (warp() == 0) {
      load4_any(a.in.q, row * a.in.q_stride + heads.key_head * kTileColumns + column(), a.in.dtype, values_[0]);
    } else if (warp() == 1) {
      load4_any(a.in.k, row * a.in.k_stride + heads.key_head * kTileColumns + column(), a.in.dtype, values_[0]);
    } else if (warp() < kFirstGateWarp) {
      load4_any(a.in.v, row * a.in.v_stride + unit.first_row + v_row(), a.in.dtype, values_[0]);
    } else if (has_gates(heads)) {
      const int head = heads.first + gate_head();
      values_[0][0] = load_element(a.in.b, row * a.in.b_stride + head, a.in.dtype);
      values_[0][1] = load_element(a.in.f, row * a.in.f_stride + head, a.in.dtype);
      values_[0][2] = a.parameters.A_log[head];
      values_[0][3] = a.parameters.dt_bias[head];
    }
  }
  // Made ready for the recurrence.
  template <class Arguments>
  __device__ __forceinline__ void store(const Arguments& a, const UnitHeads& heads, UnitToken& to) {
    if (warp() == 0) {
      normalise_row(a.parameters, a.in.dtype, kTileColumns, values_);
      multiply_row(values_, 1.0F / sqrtf(static_cast<float>(kTileColumns)));
      put(to.q + column());
    } else if (warp() == 1) {
      normalise_row(a.parameters, a.in.dtype, kTileColumns, values_);
      put(to.k + column());
    } else if (warp() < kFirstGateWarp) {
      put(to.v + v_row());
    } else if (has_gates(heads)) {  // by every lane, the same values
      to.beta[gate_head()] = beta_of(values_[0][0], a.parameters, a.in.dtype);
      to.log_decay[gate_head()] =
          log_decay_of(values_[0][1], values_[0][3], expf(values_[0][2]), a.parameters, a.in.dtype);
    }
  }

  __device__ static __forceinline__ int gate_head() { return warp() - kFirstGateWarp; }
  __device__ static __forceinline__ bool has_gates(const UnitHeads& heads) {
    return warp() >= kFirstGateWarp && gate_head() < heads.count;
  }

 private:
  static constexpr int kFirstGateWarp = kComputeWarps - kMaxUnitHeads;

  __device__ static __forceinline__ int warp() { return static_cast<int>(threadIdx.x) / 32; }
  __device__ static __forceinline__ int column() { return static_cast<int>(threadIdx.x) % 32 * 4; }
  __device__ static __forceinline__ int v_row() { return (warp() - 2) * 128 + column(); }
  __device__ __forceinline__ void put(float* to) const {
    *reinterpret_cast<float4*>(to) = make_float4(values_[0][0], values_[0][1], values_[0][2], values_[0][3]);
  }

  float values_[1][4];
};

// With S decayed: d = beta (v - S k), S += d k^T, for rows v of this thread's warp (token_cuda.cuh's update_tile).
// Every lane gets its row's d.
__device__ __forceinline__ float update_rows(StreamTile& tile, const float* k, const float* v, float beta) {
  const float held = tile.dot(k);
  const float d = beta * (v[tile.block_row + StreamTile::own_row()] - held);
  float rows[StreamTile::kRows];
  StreamTile::spread(d, rows);
  tile.add_outer(rows, k);
  return d;
}

}  // namespace replayeval::delta_rule::cuda
