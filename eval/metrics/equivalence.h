// Equivalence by two one-sided tests (Schuirmann 1987): is the difference inside (-margin, margin)?
#pragma once

#include <cstdint>
#include <span>

#include "eval/metrics/paired_accuracy.h"
#include "eval/metrics/statistics.h"

namespace replayeval::metrics {

struct Equivalence {
  double margin = 0.0;
  double p_not_below = 1.0;  // of the difference being -margin or less; alone it is the test of non-inferiority
  double p_not_above = 1.0;  // of the difference being margin or more
  double p_value = 1.0;      // the larger of the two
  bool equivalent = false;   // p_value < 1 - confidence, that is `interval` lies inside the margin
  Interval interval;         // of confidence 2 · confidence - 1, the one that the two tests speak of
  double confidence = 0.0;   // of the decision: 0.95 tests at 5 %, with a 90 % interval
};

// Of an accuracy delta, by Tango's score test. margin in (0, 1), confidence in (0.5, 1); others throw
// std::invalid_argument.
Equivalence equivalence(const PairedAccuracy& accuracy, double margin, double confidence = 0.95);

// Of the mean of paired differences, by the t interval of clustered_t. margin > 0. With too few units for an
// interval nothing can be said and std::invalid_argument says so; differences of ten units or more that are all equal
// decide with certainty.
Equivalence equivalence(std::span<const double> differences, std::span<const std::int64_t> document, double margin,
                        const IntervalOptions& options);

}  // namespace replayeval::metrics
