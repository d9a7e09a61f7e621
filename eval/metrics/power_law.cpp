// Growth of an error with the number of flushes.
#include <algorithm>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <stdexcept>

#include "eval/metrics/statistics.h"

namespace replayeval::metrics {

std::optional<PowerLaw> fit_power_law(std::span<const double> flushes, std::span<const double> error,
                                      double confidence) {
  if (flushes.size() != error.size())
    throw std::invalid_argument("power law: " + std::to_string(flushes.size()) + " flush counts and " +
                                std::to_string(error.size()) + " errors, expected as many of each");
  if (!(confidence > 0.0 && confidence < 1.0))
    throw std::invalid_argument("confidence is " + std::to_string(confidence) + ", expected a number between 0 and 1");
  std::vector<double> x, y;
  for (std::size_t i = 0; i < flushes.size(); ++i) {
    if (!std::isfinite(flushes[i]) || !std::isfinite(error[i]))
      throw std::invalid_argument("power law: point " + std::to_string(i) + " is not finite");
    if (flushes[i] <= 0.0 || error[i] <= 0.0) continue;
    x.push_back(std::log(flushes[i]));
    y.push_back(std::log(error[i]));
  }
  RunningMoments mean_x, mean_y;
  for (std::size_t i = 0; i < x.size(); ++i) {
    mean_x.add(x[i]);
    mean_y.add(y[i]);
  }
  double xx = 0.0, xy = 0.0, yy = 0.0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double dx = x[i] - mean_x.mean(), dy = y[i] - mean_y.mean();
    xx += dx * dx;
    xy += dx * dy;
    yy += dy * dy;
  }
  bool distinct = false;
  for (const double value : x) distinct = distinct || value != x.front();
  if (!distinct) return std::nullopt;

  PowerLaw law;
  law.exponent = xy / xx;
  law.c = std::exp(mean_y.mean() - law.exponent * mean_x.mean());
  law.points = static_cast<std::int64_t>(x.size());
  law.confidence = confidence;
  const double residual = std::max(0.0, yy - law.exponent * xy);
  law.r_squared = yy > 0.0 ? 1.0 - residual / yy : 1.0;
  if (law.points > 2) {
    const double freedom = static_cast<double>(law.points) - 2.0;
    const double standard_error = std::sqrt(residual / freedom / xx);
    const boost::math::students_t t(freedom);
    const double half = boost::math::quantile(t, 0.5 + confidence / 2.0) * standard_error;
    law.exponent_interval = Interval{law.exponent - half, law.exponent + half};
  }
  return law;
}

}  // namespace replayeval::metrics
