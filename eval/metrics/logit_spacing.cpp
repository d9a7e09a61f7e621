#include "eval/metrics/logit_spacing.h"

#include <algorithm>
#include <cmath>

namespace replayeval::metrics {

double spacing(double magnitude, Dtype dtype) {
  int mantissa_bits = 23, lowest_exponent = -126;
  if (dtype == Dtype::bfloat16) mantissa_bits = 7;
  if (dtype == Dtype::float16) {
    mantissa_bits = 10;
    lowest_exponent = -14;
  }
  const int exponent = magnitude == 0.0 ? lowest_exponent : std::max(std::ilogb(magnitude), lowest_exponent);
  return std::ldexp(1.0, exponent - mantissa_bits);
}

}  // namespace replayeval::metrics
