// What figures draw, as numbers: one curve an arm, whatever draws it.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "reports/results.h"

namespace replayeval::reports {

struct Curve {
  struct Point {
    double x = 0.0, y = 0.0;
    std::optional<double> low, high;
  };
  std::size_t arm = 0;  // by number in the results, which decides colour and mark in all figures
  std::string name;
  std::vector<Point> points;  // never empty
};

std::vector<std::string> arm_names(const Results& results);

// ΔPPL % by position in the window, of the arms that have one; x is the bucket's number.
std::vector<Curve> perplexity_by_position(const Results& results, const Workload& workload);
// Relative Frobenius error of the worst layer by tokens decoded, at one depth. Positions without any error are left
// out: zero has no place on a logarithmic axis.
std::vector<Curve> state_error_by_position(const Results& results, const Workload& workload, const std::string& depth);
// Share of sequences that are still the baseline's, in percent, by tokens.
std::vector<Curve> agreement_by_step(const Results& results, const Workload& workload);

}  // namespace replayeval::reports
