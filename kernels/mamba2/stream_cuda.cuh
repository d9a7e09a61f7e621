// What Mamba-2's units of stream_cuda.cuh share, exact and replay: where a unit's heads lie, and a token's inputs.
#pragma once

#include "kernels/mamba2/launch_cuda.cuh"
#include "kernels/stream_cuda.cuh"

namespace replayeval::mamba2::cuda {

inline constexpr int kMaxUnitHeads = kUnitTiles;

// A unit's heads: all rows of kUnitRows / head_dim heads of a group.
struct UnitHeads {
  int first, count, group;
  bool leads_group;

  __device__ __forceinline__ UnitHeads(const Shape& shape, const Unit& unit) {
    const auto P = static_cast<int>(shape.head_dim);
    const auto heads_per_group = static_cast<int>(shape.num_heads) / static_cast<int>(shape.num_groups);
    first = unit.first_row / P;
    count = kUnitRows / P;
    group = first / heads_per_group;
    leads_group = first == group * heads_per_group;
  }
};

inline bool streams(const Shape& shape) {
  return shape.state_size == kTileColumns && (shape.head_dim == kTileRows || shape.head_dim == 2 * kTileRows) &&
         shape.num_heads / shape.num_groups * shape.head_dim % kUnitRows == 0;
}

inline StreamCut stream_cut(const Shape& shape, std::int64_t batch) {
  StreamCut cut;
  cut.units_per_row = static_cast<int>(shape.num_heads * shape.head_dim / kUnitRows);
  cut.units = static_cast<int>(batch * cut.units_per_row);
  return cut;
}

// In shared memory, as float32.
struct UnitToken {
  float B[kTileColumns], C[kTileColumns], x[kUnitRows];
};

// A token's inputs on their way to shared memory. Of the eight warps one has B, one C, two x and four a head's dt; each
// thread also has D of the row that it finishes.
class UnitOperands {
 public:
  template <class Arguments>
  __device__ __forceinline__ void load(const Arguments& a, const Unit& unit) {
    const UnitHeads heads(a.shape, unit);
    const std::int64_t row = unit.row;
    if (warp() == 0) {
      load4_any(a.in.B, row * a.in.B_stride + heads.group * kTileColumns + column(), a.in.dtype, values_);
    } else if (warp() == 1) {
      load4_any(a.in.C, row * a.in.C_stride + heads.group * kTileColumns + column(), a.in.dtype, values_);
    } else if (warp() < kFirstDtWarp) {
      load4_any(a.in.x, row * a.in.x_stride + unit.first_row + x_row(), a.in.dtype, values_);
    } else if (has_dt(heads)) {
      const int head = heads.first + dt_head();
      values_[0] = load_element(a.in.dt, row * a.in.dt_stride + head, a.in.dtype);
      values_[1] = a.parameters.A_log[head];
      values_[2] = a.parameters.dt_bias[head];
    }
    D_ = a.parameters.D[heads.first + own_tile() * kTileRows / static_cast<int>(a.shape.head_dim)];
  }
  __device__ __forceinline__ void store(UnitToken& to) const {
    if (warp() == 0) {
      put(to.B + column());
    } else if (warp() == 1) {
      put(to.C + column());
    } else if (warp() < kFirstDtWarp) {
      put(to.x + x_row());
    }
  }

  // In the warps that have a head's dt, every lane the same.
  __device__ static __forceinline__ int dt_head() { return warp() - kFirstDtWarp; }
  __device__ static __forceinline__ bool has_dt(const UnitHeads& heads) {
    return warp() >= kFirstDtWarp && dt_head() < heads.count;
  }
  __device__ __forceinline__ float dt(const Parameters& p) const {
    return time_step(values_[0], values_[2], p.dt_min, p.dt_max);
  }
  __device__ __forceinline__ float rate() const { return decay_rate(values_[1]); }
  __device__ __forceinline__ float D() const { return D_; }

 private:
  static constexpr int kFirstDtWarp = kComputeWarps - kMaxUnitHeads;

  __device__ static __forceinline__ int warp() { return static_cast<int>(threadIdx.x) / 32; }
  __device__ static __forceinline__ int column() { return static_cast<int>(threadIdx.x) % 32 * 4; }
  __device__ static __forceinline__ int x_row() { return (warp() - 2) * 128 + column(); }
  __device__ __forceinline__ void put(float* to) const {
    *reinterpret_cast<float4*>(to) = make_float4(values_[0], values_[1], values_[2], values_[3]);
  }

  float values_[4];
  float D_;
};

}  // namespace replayeval::mamba2::cuda
