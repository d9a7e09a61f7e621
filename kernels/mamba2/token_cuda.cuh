// A token's operands on their way from the caller's tensors to a block's shared memory: loads first, into registers, so
// that the next token's are under way while this one is computed. A warp each has B, C, x and dt.
#pragma once

#include "kernels/mamba2/launch_cuda.cuh"

namespace replayeval::mamba2::cuda {

enum class Part : int { B, C, x, dt };

class TokenOperands {
 public:
  __device__ __forceinline__ void load(const Shape& shape, const Inputs& in, const BlockHead& h, std::int64_t token) {
    const auto N = static_cast<int>(shape.state_size);
    switch (part()) {
      case Part::B:
        load_row(in.B, token * in.B_stride + h.group * N, in.dtype, N);
        break;
      case Part::C:
        load_row(in.C, token * in.C_stride + h.group * N, in.dtype, N);
        break;
      case Part::x:
        load_row(in.x, h.x_offset(shape, token, in.x_stride), in.dtype, h.rows);
        break;
      case Part::dt:
        values_[0][0] = load_element(in.dt, token * in.dt_stride + h.head, in.dtype);
        break;
      default:
        break;
    }
  }

  __device__ __forceinline__ void store(const Shape& shape, const BlockHead& h, float* x, float* B, float* C) const {
    const auto N = static_cast<int>(shape.state_size);
    switch (part()) {
      case Part::B:
        store_row(B, N);
        break;
      case Part::C:
        store_row(C, N);
        break;
      case Part::x:
        store_row(x, h.rows);
        break;
      default:
        break;
    }
  }

  // In the warp that has dt, every lane: after softplus and clamp.
  __device__ static __forceinline__ bool has_dt() { return part() == Part::dt; }
  __device__ __forceinline__ float dt(const Parameters& parameters, int head) const {
    return time_step(values_[0][0], parameters.dt_bias[head], parameters.dt_min, parameters.dt_max);
  }

 private:
  static constexpr int kVectors = 2;  // of 32 lanes x 4 elements: 256 columns

  __device__ static __forceinline__ Part part() { return static_cast<Part>(threadIdx.x / 32); }
  __device__ static __forceinline__ int element(int k) { return static_cast<int>(threadIdx.x) % 32 * 4 + 128 * k; }

  __device__ __forceinline__ void load_row(const void* data, std::int64_t start, Dtype dtype, int count) {
#pragma unroll
    for (int k = 0; k < kVectors; ++k) {
      if (element(k) < count) load4_any(data, start + element(k), dtype, values_[k]);
    }
  }
  __device__ __forceinline__ void store_row(float* to, int count) const {
#pragma unroll
    for (int k = 0; k < kVectors; ++k) {
      if (element(k) >= count) continue;
      *reinterpret_cast<float4*>(to + element(k)) =
          make_float4(values_[k][0], values_[k][1], values_[k][2], values_[k][3]);
    }
  }

  float values_[kVectors][4];
};

}  // namespace replayeval::mamba2::cuda
