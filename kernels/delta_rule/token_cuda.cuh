// A token's operands on their way from the caller's tensors to a block's shared memory: loads first, into registers, so
// that the next token's are under way while this one is computed; then made ready for the recurrence. A warp each has
// q, k, v and the gates.
#pragma once

#include "kernels/delta_rule/launch_cuda.cuh"
#include "kernels/delta_rule/normalise_cuda.cuh"
#include "kernels/delta_rule/scalars_cuda.cuh"
#include "kernels/vector_products_cuda.cuh"

namespace replayeval::delta_rule::cuda {

enum class Part : int { q, k, v, gates };

// In shared memory.
struct TokenTarget {
  float* q;                        // [key_dim], normalised and scaled
  float* k;                        // [key_dim], normalised
  float* v;                        // [rows of the block]
  float* log_decay;                // [gate_dim]
  float* decay;                    // [gate_dim], exp of it; null where it is not wanted
  float* beta;                     // [1]
  VectorParts* vectors = nullptr;  // k and q once more, where they are wanted so; with 128 columns
};

// kChannels: a decay for each key channel.
template <bool kChannels>
class TokenOperands {
 public:
  __device__ __forceinline__ void load(const Shape& shape, const Inputs& in, const BlockHead& h, std::int64_t token) {
    const auto K = static_cast<int>(shape.key_dim);
    switch (part()) {
      case Part::q:
        load_row(in.q, token * in.q_stride + h.group * K, in.dtype, K);
        break;
      case Part::k:
        load_row(in.k, token * in.k_stride + h.group * K, in.dtype, K);
        break;
      case Part::v:
        load_row(in.v, h.x_offset(shape, token, in.v_stride), in.dtype, h.rows);
        break;
      case Part::gates:
        raw_beta_ = load_element(in.b, token * in.b_stride + h.head, in.dtype);
        if constexpr (kChannels) {
          load_row(in.f, token * in.f_stride + h.head * K, in.dtype, K);
        } else {
          values_[0][0] = load_element(in.f, token * in.f_stride + h.head, in.dtype);
        }
        break;
      default:
        break;
    }
  }

  __device__ __forceinline__ void store(const Shape& shape, const Inputs& in, const Parameters& p, const BlockHead& h,
                                        const TokenTarget& to) {
    const auto K = static_cast<int>(shape.key_dim);
    switch (part()) {
      case Part::q:
        normalise_row(p, in.dtype, K, values_);
        multiply_row(values_, 1.0F / sqrtf(static_cast<float>(K)));
        store_row(to.q, K);
        if (to.vectors != nullptr) to.vectors->put(1, values_[0]);
        break;
      case Part::k:
        normalise_row(p, in.dtype, K, values_);
        store_row(to.k, K);
        if (to.vectors != nullptr) to.vectors->put(0, values_[0]);
        break;
      case Part::v:
        store_row(to.v, h.rows);
        break;
      case Part::gates:
        store_gates(p, in.dtype, h.head, K, to);
        break;
      default:
        break;
    }
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

  __device__ __forceinline__ void store_gates(const Parameters& p, Dtype compute, int head, int K,
                                              const TokenTarget& to) {
    const float rate = expf(p.A_log[head]);
    *to.beta = beta_of(raw_beta_, p, compute);  // by every lane, the same value
    if constexpr (kChannels) {
#pragma unroll
      for (int k = 0; k < kVectors; ++k) {
        if (element(k) >= K) continue;
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const int c = element(k) + i;
          const float g = log_decay_of(values_[k][i], p.dt_bias[head * K + c], rate, p, compute);
          to.log_decay[c] = g;
          if (to.decay != nullptr) to.decay[c] = expf(g);
        }
      }
    } else {
      const float g = log_decay_of(values_[0][0], p.dt_bias[head], rate, p, compute);
      *to.log_decay = g;
      if (to.decay != nullptr) *to.decay = expf(g);
    }
  }

  float values_[kVectors][4];
  float raw_beta_;
};

// With S decayed: d = beta (v - S k), S += d k^T. Every lane gets its row's d (own_row()).
template <class T>
__device__ __forceinline__ float update_tile(T& tile, const float* k, const float* v, float beta) {
  const float held = tile.dot(k);
  const float d = tile.active ? beta * (v[tile.block_row + T::own_row()] - held) : 0.0F;
  float rows[T::kRows];
  T::spread(d, rows);
  tile.add_outer(rows, k);
  return d;
}

// S diag(decay); kChannels: decay [key_dim], otherwise [1]; in shared memory.
template <bool kChannels, class T>
__device__ __forceinline__ void decay_tile(T& tile, const float* decay) {
  if constexpr (kChannels) {
    tile.multiply_columns(decay);
  } else {
    tile.multiply(*decay);
  }
}

}  // namespace replayeval::delta_rule::cuda
