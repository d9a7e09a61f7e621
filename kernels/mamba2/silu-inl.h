// silu(v) = v / (1 + exp(-v)) eight at a time (CPU).
#if defined(REPLAYEVAL_KERNELS_MAMBA2_SILU_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef REPLAYEVAL_KERNELS_MAMBA2_SILU_INL_H_
#undef REPLAYEVAL_KERNELS_MAMBA2_SILU_INL_H_
#else
#define REPLAYEVAL_KERNELS_MAMBA2_SILU_INL_H_
#endif

#include "kernels/chunk-inl.h"

#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace replayeval {
namespace HWY_NAMESPACE {

HWY_INLINE Chunk silu(const Chunk& value) {
  const ChunkTag d;
  const auto one = hn::Set(d, 1.0F);
  const auto most = hn::Set(d, 100.0F);  // exp(100) is infinity in float32, and within what Exp is made for
  Chunk out;
  for (std::size_t i = 0; i < kParts; ++i) {
    const auto v = value.part[i];
    const auto negated = hn::Neg(v);
    const auto exponent = hn::IfThenElse(hn::Gt(negated, most), most, negated);
    out.part[i] = hn::Div(v, hn::Add(one, hn::Exp(d, exponent)));  // a NaN stays one through the numerator
  }
  return out;
}

}  // namespace HWY_NAMESPACE
}  // namespace replayeval
HWY_AFTER_NAMESPACE();

#endif  // REPLAYEVAL_KERNELS_MAMBA2_SILU_INL_H_
