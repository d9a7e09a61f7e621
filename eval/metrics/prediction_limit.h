// The largest value to expect of further draws.
#pragma once

#include <cstdint>
#include <vector>

namespace replayeval::metrics {

// All of `draws` further values stay below this with `confidence`, if they and `values`, positive numbers of a common
// log-normal distribution, are independent: the prediction limit exp(mean + t sd sqrt(1 + 1/n)) of the logarithms, t
// Student's quantile of n - 1 degrees of freedom at 1 - (1 - confidence) / draws (Hahn & Meeker 1991, "Statistical
// Intervals", with Bonferroni's inequality over the draws). Zeros are left out; of fewer than two other
// values it is the largest. Throws std::invalid_argument on no values, a negative one, draws below 1.
double largest_to_expect(const std::vector<double>& values, std::int64_t draws, double confidence);

}  // namespace replayeval::metrics
