// Vectorised passes over one row of float32 logits; arithmetic and sums in float64. The order of a sum depends on the
// row's length alone, never on where the row lies in memory.
#pragma once

#include <cstddef>

namespace replayeval::metrics::sweeps {

inline constexpr std::size_t padding = 32;  // zeros that must follow an array of exponentials

struct Extremes {
  double min = 0.0, max = 0.0;
  double second = 0.0;  // the second largest (== max if it occurs twice); -infinity for a single logit
  bool finite = false;
};

Extremes extremes(const float* logits, std::size_t count);

// exp(logits - max) into `out` ([count + padding], zeros after `count`); returns the sum.
double exponentials(const float* logits, std::size_t count, double max, double* out);
double sum_of_exponentials(const float* logits, std::size_t count, double max);

// sum_i weight_i (z_i - w_i)
double weighted_difference(const double* weight, const float* z, const float* w, std::size_t count);

// sum_i weight_i (exp(-c_i) - 1 + c_i), c_i = z_i - w_i - mu; every term >= 0.
double weighted_excess(const double* weight, const float* z, const float* w, std::size_t count, double mu);

}  // namespace replayeval::metrics::sweeps
