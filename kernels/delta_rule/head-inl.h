// Moves one value head's tokens between the caller's memory and float32 scratch, ready for the recurrence (CPU).
#if defined(REPLAYEVAL_KERNELS_DELTA_RULE_HEAD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef REPLAYEVAL_KERNELS_DELTA_RULE_HEAD_INL_H_
#undef REPLAYEVAL_KERNELS_DELTA_RULE_HEAD_INL_H_
#else
#define REPLAYEVAL_KERNELS_DELTA_RULE_HEAD_INL_H_
#endif

#include "kernels/chunk-inl.h"
#include "kernels/delta_rule/delta_rule.h"
#include "kernels/delta_rule/scalars.h"
#include "kernels/storage_simd-inl.h"

#include <hwy/contrib/math/math-inl.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

HWY_BEFORE_NAMESPACE();
namespace replayeval::delta_rule {
namespace HWY_NAMESPACE {

using namespace ::replayeval::HWY_NAMESPACE;  // chunks and storage

struct Head {
  std::int64_t head = 0, key_head = 0;
  std::size_t key_dim = 0, value_dim = 0, gate_dim = 0;
  std::int64_t state_offset = 0;  // of this slot and head, in elements
  bool leads_group = false;       // the first of the value heads that share the key head

  Head(Family family, const Shape& shape, std::int64_t slot, std::int64_t head_index)
      : head(head_index),
        key_head(head_index / (shape.num_value_heads / shape.num_key_heads)),
        key_dim(static_cast<std::size_t>(shape.key_dim)),
        value_dim(static_cast<std::size_t>(shape.value_dim)),
        gate_dim(static_cast<std::size_t>(delta_rule::gate_dim(family, shape))),
        state_offset((slot * shape.num_value_heads + head_index) * shape.value_dim * shape.key_dim),
        leads_group(head_index % (shape.num_value_heads / shape.num_key_heads) == 0) {}
};

// One token of a value head.
struct Token {
  float* q;          // [key_dim]; null where it is not wanted
  float* k;          // [key_dim]
  float* v;          // [value_dim]
  float* log_decay;  // [gate_dim]
  float* beta;       // [1]
};

HWY_INLINE void normalise(const Parameters& p, Dtype compute, std::size_t n, float* x) {
  const float inverse = 1.0F / std::sqrt(dot(x, x, n) + kNormEps);
  const Chunk by = Chunk::all(inverse);
  for (std::size_t i = 0; i < n; i += kChunk) mul(by, Chunk::load(x + i)).store(x + i);
  if (p.numerics.qk_norm == Precision::compute) round_in_place({compute, Overflow::infinity}, x, n, nullptr);
}

HWY_INLINE void load_token(const Head& h, const Inputs& in, const Parameters& p, std::int64_t token, const Token& to) {
  const auto K = static_cast<std::int64_t>(h.key_dim);
  const auto V = static_cast<std::int64_t>(h.value_dim);
  widen(in.dtype, in.k, token * in.k_stride + h.key_head * K, h.key_dim, to.k);
  normalise(p, in.dtype, h.key_dim, to.k);
  if (to.q != nullptr) {
    widen(in.dtype, in.q, token * in.q_stride + h.key_head * K, h.key_dim, to.q);
    normalise(p, in.dtype, h.key_dim, to.q);
    const Chunk scale = Chunk::all(1.0F / std::sqrt(static_cast<float>(K)));
    for (std::size_t i = 0; i < h.key_dim; i += kChunk) mul(scale, Chunk::load(to.q + i)).store(to.q + i);
  }
  widen(in.dtype, in.v, token * in.v_stride + h.head * V, h.value_dim, to.v);
  *to.beta =
      beta_of(storage::load(in.b, static_cast<std::size_t>(token * in.b_stride + h.head), in.dtype), p, in.dtype);
  const auto gates = static_cast<std::int64_t>(h.gate_dim);
  widen(in.dtype, in.f, token * in.f_stride + h.head * gates, h.gate_dim, to.log_decay);
  const float rate = std::exp(p.A_log[h.head]);
  const float* bias = p.dt_bias + h.head * gates;
  for (std::size_t c = 0; c < h.gate_dim; ++c) {
    to.log_decay[c] = log_decay_of(to.log_decay[c], bias[c], rate, p, in.dtype);
  }
}

// exp of values up to 0; a NaN stays one.
HWY_INLINE Chunk exp_of(const Chunk& x) {
  Chunk out;
  for (std::size_t i = 0; i < kParts; ++i) {
    out.part[i] = hn::IfThenElse(hn::IsNaN(x.part[i]), x.part[i], hn::Exp(ChunkTag(), x.part[i]));
  }
  return out;
}

// to[0..key_dim) = exp(log_decay), a scalar decay repeated, so that both families' arithmetic is one.
HWY_INLINE void decay_of(const Head& h, const float* log_decay, float* to) {
  for (std::size_t c = 0; c < h.key_dim; c += kChunk) {
    const Chunk g = h.gate_dim == 1 ? Chunk::all(log_decay[0]) : Chunk::load(log_decay + c);
    exp_of(g).store(to + c);
  }
}

HWY_INLINE void store_y(const Head& h, const Output& out, std::int64_t token, const float* y) {
  narrow({out.dtype, Overflow::infinity}, y, h.value_dim, out.y,
         token * out.y_stride + h.head * static_cast<std::int64_t>(h.value_dim));
}

// A padded row's output.
HWY_INLINE void store_zero_y(const Head& h, const Output& out, std::int64_t token, float* zeros) {
  std::fill_n(zeros, h.value_dim, 0.0F);
  store_y(h, out, token, zeros);
}

}  // namespace HWY_NAMESPACE
}  // namespace replayeval::delta_rule
HWY_AFTER_NAMESPACE();

#endif  // REPLAYEVAL_KERNELS_DELTA_RULE_HEAD_INL_H_
