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

// Mean of `values` with the interval of the studentised bootstrap (Efron 1979; Hall 1988): each resample's distance
// from the mean is measured in its own standard error, so that the interval follows the skew of sums of which few large
// terms make up most, such as divergences: a t interval of KL ended too low 5 to 10 times in a hundred, this one 2 to 5
// (tests/eval/metrics/real_coverage_test.cpp). Below 6 units, which leave resamples without spread, it is the t
// interval. Otherwise as clustered_t.
Estimate studentised_mean(std::span<const double> values, std::span<const std::int64_t> document,
                          const IntervalOptions& options);

}  // namespace replayeval::metrics
