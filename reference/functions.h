// Scalar functions and size checks that the recurrences share, in float64.
#pragma once

#include <Eigen/Core>

#include <cmath>
#include <stdexcept>
#include <string>

namespace replayeval::reference {

inline double softplus(double value) {
  return value > 0.0 ? value + std::log1p(std::exp(-value)) : std::log1p(std::exp(value));
}

inline double sigmoid(double value) { return 1.0 / (1.0 + std::exp(-value)); }

inline double silu(double value) { return value * sigmoid(value); }

// Throws std::invalid_argument with the size that `what` has and the size expected.
inline void expect_size(const char* what, Eigen::Index rows, Eigen::Index cols, Eigen::Index want_rows,
                        Eigen::Index want_cols) {
  if (rows == want_rows && cols == want_cols) return;
  throw std::invalid_argument("reference: " + std::string(what) + " is " + std::to_string(rows) + " x " +
                              std::to_string(cols) + ", expected " + std::to_string(want_rows) + " x " +
                              std::to_string(want_cols));
}

}  // namespace replayeval::reference
