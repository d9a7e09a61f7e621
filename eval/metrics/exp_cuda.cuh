// exp in float64 for sums over a vocabulary: a third of the instructions of the library's, because arguments that would
// overflow or leave the normal numbers are the caller's business.
#pragma once

namespace replayeval::metrics {

inline constexpr double kExpRange = 64.0;   // above: the reduction's error, k * 2.3e-17, shows
inline constexpr double kExpDepth = 600.0;  // below: the result is no normal number

// From the highest power down; in constant memory, which instructions read in passing.
__constant__ double kExpPolynomial[11] = {0x1.2a477b4aaa299p-22,
                                          0x1.730be55d03147p-19,
                                          0x1.a017fb28f6151p-16,
                                          0x1.a01967b4b02e5p-13,
                                          0x1.6c16c20dc307cp-10,
                                          0x1.11111133770fcp-7,
                                          0x1.555555552f89ap-5,
                                          0x1.5555555548c6fp-3,
                                          0x1.000000000004bp-1,
                                          0x1.0000000000029p+0,
                                          1.0};

// exp(x) for -kExpDepth <= x <= kExpRange; exp(0) is 1. Relative error below 1e-15 for |x| <= 10, 3e-15 for |x| <= 64
// and 2.1e-14 below, where nothing is left beside a sum that holds exp(0). With
// x = k ln 2 + r, |r| <= ln 2 / 2: 2^k times the polynomial of degree 10 in r that has the least largest relative error
// (3.0e-16, by the Remez exchange) among those that are 1 at 0.
__device__ __forceinline__ double bounded_exp(double x) {
  constexpr double kToInteger = 0x1.8p52;  // added, the low word holds the rounded integer
  const double shifted = __fma_rn(x, 0x1.71547652b82fep+0, kToInteger);
  const double r = __fma_rn(__dsub_rn(shifted, kToInteger), -0x1.62e42fefa39efp-1, x);
  double sum = kExpPolynomial[0];
#pragma unroll
  for (int i = 1; i < 11; ++i) sum = __fma_rn(sum, r, kExpPolynomial[i]);
  return __hiloint2double(__double2hiint(sum) + (__double2loint(shifted) << 20), __double2loint(sum));
}

}  // namespace replayeval::metrics
