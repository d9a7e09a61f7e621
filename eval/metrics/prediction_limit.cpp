#include "eval/metrics/prediction_limit.h"

#include <boost/math/distributions/students_t.hpp>

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace replayeval::metrics {

double largest_to_expect(const std::vector<double>& values, std::int64_t draws, double confidence) {
  if (values.empty() || draws < 1)
    throw std::invalid_argument("prediction limit: expected at least one value and one draw");
  std::vector<double> logs;
  for (const double value : values) {
    if (!(value >= 0.0)) throw std::invalid_argument("prediction limit: expected values of at least 0");
    if (value > 0.0) logs.push_back(std::log(value));
  }
  if (logs.size() < 2) return *std::max_element(values.begin(), values.end());
  const auto n = static_cast<double>(logs.size());
  double mean = 0.0, square = 0.0;
  for (const double value : logs) mean += value / n;
  for (const double value : logs) square += (value - mean) * (value - mean) / (n - 1.0);
  const boost::math::students_t distribution(n - 1.0);
  const double t = quantile(complement(distribution, (1.0 - confidence) / static_cast<double>(draws)));
  return std::exp(mean + t * std::sqrt(square * (1.0 + 1.0 / n)));
}

}  // namespace replayeval::metrics
