// sigmoid(v) = 1 / (1 + exp(-v)) and silu(v) = v sigmoid(v), on the GPU.
#pragma once

namespace replayeval::cuda {

__device__ __forceinline__ float sigmoid_denominator(float value) { return 1.0F + expf(-value); }
__device__ __forceinline__ float silu(float value) { return value / sigmoid_denominator(value); }

// numerator / denominator, correctly rounded where neither they nor the quotient come near the ends of float32's range:
// two Newton steps on the quotient with exact remainders (Markstein), as in the division's own code, but without its
// branch, so that the quotients of a vector can be computed side by side.
__device__ __forceinline__ float mid_range_quotient(float numerator, float denominator) {
  float inverse;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(inverse) : "f"(denominator));
  inverse = fmaf(inverse, fmaf(-denominator, inverse, 1.0F), inverse);
  float quotient = numerator * inverse;
  quotient = fmaf(fmaf(-denominator, quotient, numerator), inverse, quotient);
  return fmaf(fmaf(-denominator, quotient, numerator), inverse, quotient);
}

// silu of each value, or sigmoid: the same bits as one by one.
template <int kCount>
__device__ __forceinline__ void gate_factors(bool is_silu, float (&values)[kCount]) {
  float lowest = values[0], highest = values[0], smallest = is_silu ? fabsf(values[0]) : 1.0F;
#pragma unroll
  for (int i = 1; i < kCount; ++i) {
    lowest = fminf(lowest, values[i]), highest = fmaxf(highest, values[i]);
    if (is_silu) smallest = fminf(smallest, fabsf(values[i]));
  }
  // A NaN, which the minima pass over, makes its own quotient NaN either way.
  const bool mid_range = lowest > -64.0F && highest < 0x1p100F && smallest > 0x1p-60F;
  if (mid_range) {
#pragma unroll
    for (int i = 0; i < kCount; ++i)
      values[i] = mid_range_quotient(is_silu ? values[i] : 1.0F, sigmoid_denominator(values[i]));
  } else {
#pragma unroll
    for (int i = 0; i < kCount; ++i) values[i] = (is_silu ? values[i] : 1.0F) / sigmoid_denominator(values[i]);
  }
}

}  // namespace replayeval::cuda
