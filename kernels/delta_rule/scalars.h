// A token's beta and g, defined once for the exact and the replay executor and both modes (CPU).
#pragma once

#include "kernels/delta_rule/delta_rule.h"
#include "kernels/storage_scalar.h"

#include <cmath>

namespace replayeval::delta_rule {

inline float sigmoid(float value) { return 1.0F / (1.0F + std::exp(-value)); }

// softplus(v) = v above 20, as published implementations do; a NaN stays one.
inline float softplus(float value) { return value > 20.0F ? value : std::log1p(std::exp(value)); }

inline float at_precision(float value, Precision precision, Dtype compute) {
  return precision == Precision::compute ? storage::rounded(value, {compute, Overflow::infinity}) : value;
}

inline float beta_of(float raw, const Parameters& p, Dtype compute) {
  const float beta = at_precision(sigmoid(raw), p.numerics.beta, compute);
  return p.allow_neg_eigval ? 2.0F * beta : beta;
}

// rate = exp(A_log)
inline float log_decay_of(float raw, float bias, float rate, const Parameters& p, Dtype compute) {
  const float shifted = raw + bias;
  const float g = p.gate == Gate::bounded ? p.lower_bound * sigmoid(rate * shifted) : -rate * softplus(shifted);
  return at_precision(g, p.numerics.log_decay, compute);
}

}  // namespace replayeval::delta_rule
