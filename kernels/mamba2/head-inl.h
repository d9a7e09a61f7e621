// Moves one head's values between the caller's memory and float32 scratch (CPU).
#if defined(REPLAYEVAL_KERNELS_MAMBA2_HEAD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef REPLAYEVAL_KERNELS_MAMBA2_HEAD_INL_H_
#undef REPLAYEVAL_KERNELS_MAMBA2_HEAD_INL_H_
#else
#define REPLAYEVAL_KERNELS_MAMBA2_HEAD_INL_H_
#endif

#include "kernels/chunk-inl.h"
#include "kernels/mamba2/mamba2.h"
#include "kernels/mamba2/scalars.h"
#include "kernels/storage_simd-inl.h"

#include <cstddef>
#include <cstdint>

HWY_BEFORE_NAMESPACE();
namespace replayeval {
namespace HWY_NAMESPACE {

struct Head {
  std::int64_t head = 0, group = 0;
  std::size_t head_dim = 0, state_size = 0;
  std::int64_t state_offset = 0;  // of this slot and head, in elements
  float rate = 0.0F, D = 0.0F, bias = 0.0F, dt_min = 0.0F, dt_max = 0.0F;

  Head(const mamba2::Shape& shape, const mamba2::Parameters& p, std::int64_t slot, std::int64_t head_index)
      : head(head_index),
        group(head_index / (shape.num_heads / shape.num_groups)),
        head_dim(static_cast<std::size_t>(shape.head_dim)),
        state_size(static_cast<std::size_t>(shape.state_size)),
        state_offset((slot * shape.num_heads + head_index) * shape.head_dim * shape.state_size),
        rate(mamba2::decay_rate(p.A_log[head_index])),
        D(p.D == nullptr ? 0.0F : p.D[head_index]),
        bias(p.dt_bias == nullptr ? 0.0F : p.dt_bias[head_index]),
        dt_min(p.dt_min),
        dt_max(p.dt_max) {}
};

// One token's inputs of a head: x [head_dim], B and C [state_size]; returns dt.
HWY_INLINE float load_token(const Head& h, const mamba2::Inputs& in, std::int64_t token, float* x, float* B, float* C) {
  const auto P = static_cast<std::int64_t>(h.head_dim);
  const auto N = static_cast<std::int64_t>(h.state_size);
  widen(in.dtype, in.x, token * in.x_stride + h.head * P, h.head_dim, x);
  widen(in.dtype, in.B, token * in.B_stride + h.group * N, h.state_size, B);
  widen(in.dtype, in.C, token * in.C_stride + h.group * N, h.state_size, C);
  const float raw = storage::load(in.dt, static_cast<std::size_t>(token * in.dt_stride + h.head), in.dtype);
  return mamba2::time_step(raw, h.bias, h.dt_min, h.dt_max);
}

// y += D x, then stored.
HWY_INLINE void store_y(const Head& h, const mamba2::Output& out, std::int64_t token, const float* x, float* y) {
  const Chunk D = Chunk::all(h.D);
  for (std::size_t p = 0; p < h.head_dim; p += kChunk) fma(D, Chunk::load(x + p), Chunk::load(y + p)).store(y + p);
  narrow({out.dtype, Overflow::infinity}, y, h.head_dim, out.y,
         token * out.y_stride + h.head * static_cast<std::int64_t>(h.head_dim));
}

// A padded row's output.
HWY_INLINE void store_zero_y(const Head& h, const mamba2::Output& out, std::int64_t token, float* zeros) {
  for (std::size_t p = 0; p < h.head_dim; ++p) zeros[p] = 0.0F;
  narrow({out.dtype, Overflow::infinity}, zeros, h.head_dim, out.y,
         token * out.y_stride + h.head * static_cast<std::int64_t>(h.head_dim));
}

}  // namespace HWY_NAMESPACE
}  // namespace replayeval
HWY_AFTER_NAMESPACE();

#endif  // REPLAYEVAL_KERNELS_MAMBA2_HEAD_INL_H_
