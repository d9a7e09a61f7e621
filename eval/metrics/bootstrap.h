// What bootstraps are made of, and the studentised one.
#pragma once

#include <cstdint>
#include <random>
#include <span>
#include <vector>

#include "eval/metrics/statistics.h"

namespace replayeval::metrics {

// Uniform in [0, bound) by multiply-shift: std::uniform_int_distribution differs between standard libraries.
std::size_t draw_below(std::mt19937_64& random, std::size_t bound);

// With linear interpolation; `sorted` ascends and is not empty.
double sorted_quantile(const std::vector<double>& sorted, double probability);

// Mean of `values`; each end of its interval is the further one of two, of the studentised bootstrap's (Efron 1979;
// Hall 1988) and of clustered_t's. The bootstrap measures each resample's distance from the mean in its own standard
// error, so it follows the skew of sums of which few large terms make up most, such as divergences: a t interval of KL
// ended too low 5 to 10 times in a hundred. Few units may hide the skew that one knows of, or feign it: then t's end is
// the safe one. Both together hold the truth more often than BCa, t or either alone
// (tests/eval/metrics/real_coverage_test.cpp). Units that are all alike have the t interval and its p-value; otherwise
// there is no p-value.
Estimate studentised_mean(std::span<const double> values, std::span<const std::int64_t> document,
                          const IntervalOptions& options);

// The same of what clustered_t has found of these values.
Estimate reaching_further(const Estimate& student, std::span<const double> values,
                          std::span<const std::int64_t> document, const IntervalOptions& options);

}  // namespace replayeval::metrics
