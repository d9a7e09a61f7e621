// sigmoid(v) = 1 / (1 + exp(-v)) and silu(v) = v sigmoid(v), eight at a time (CPU).
#if defined(REPLAYEVAL_KERNELS_SILU_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef REPLAYEVAL_KERNELS_SILU_INL_H_
#undef REPLAYEVAL_KERNELS_SILU_INL_H_
#else
#define REPLAYEVAL_KERNELS_SILU_INL_H_
#endif

#include "kernels/chunk-inl.h"

#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace replayeval {
namespace HWY_NAMESPACE {

// 1 + exp(-v); of a NaN some number.
HWY_INLINE hn::Vec<ChunkTag> sigmoid_denominator(hn::Vec<ChunkTag> v) {
  const ChunkTag d;
  const auto most = hn::Set(d, 100.0F);  // exp(100) is infinity in float32, and within what Exp is made for
  const auto negated = hn::Neg(v);
  const auto exponent = hn::IfThenElse(hn::Gt(negated, most), most, negated);
  return hn::Add(hn::Set(d, 1.0F), hn::Exp(d, exponent));
}

HWY_INLINE Chunk silu(const Chunk& value) {
  Chunk out;
  for (std::size_t i = 0; i < kParts; ++i) {
    const auto v = value.part[i];
    out.part[i] = hn::Div(v, sigmoid_denominator(v));  // a NaN stays one through the numerator
  }
  return out;
}

HWY_INLINE Chunk sigmoid(const Chunk& value) {
  Chunk out;
  for (std::size_t i = 0; i < kParts; ++i) {
    const auto v = value.part[i];
    const auto sigmoid = hn::Div(hn::Set(ChunkTag(), 1.0F), sigmoid_denominator(v));
    out.part[i] = hn::IfThenElse(hn::IsNaN(v), v, sigmoid);
  }
  return out;
}

}  // namespace HWY_NAMESPACE
}  // namespace replayeval
HWY_AFTER_NAMESPACE();

#endif  // REPLAYEVAL_KERNELS_SILU_INL_H_
