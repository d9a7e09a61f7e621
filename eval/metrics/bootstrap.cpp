#include "eval/metrics/bootstrap.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "eval/metrics/resampling_units.h"

namespace replayeval::metrics {
namespace {

// A unit as its distance from what the mean of all leads one to expect of so many tokens.
struct Residual {
  double sum = 0.0, tokens = 0.0;
};

std::vector<Residual> residuals_of(std::span<const double> values, const ResamplingUnits& units, double mean) {
  std::vector<Residual> residuals;
  for (const TokenRun& run : units.runs) {
    Residual unit;
    for (std::size_t i = run.begin; i < run.end; ++i) unit.sum += values[i] - mean;
    unit.tokens = static_cast<double>(run.end - run.begin);
    residuals.push_back(unit);
  }
  return residuals;
}

// Sums over units that give the distance of a mean and its standard error (the linearised ratio estimator of
// clustered_t).
struct Sums {
  double sum = 0.0, tokens = 0.0, squares = 0.0, products = 0.0, token_squares = 0.0;
  double count = 0.0;

  void add(const Residual& unit) {
    sum += unit.sum;
    tokens += unit.tokens;
    squares += unit.sum * unit.sum;
    products += unit.sum * unit.tokens;
    token_squares += unit.tokens * unit.tokens;
    count += 1.0;
  }
  double distance() const { return sum / tokens; }
  double standard_error() const {
    const double d = distance();
    const double spread = squares - 2.0 * d * products + d * d * token_squares;
    return std::sqrt(std::max(0.0, spread) * count / (count - 1.0)) / tokens;
  }
};

// The distances of resampled means in their own standard errors, ascending; resamples without spread are left out.
std::vector<double> resampled_t(const std::vector<Residual>& units, const IntervalOptions& options) {
  std::mt19937_64 random(options.seed);
  std::vector<double> result;
  for (std::int64_t s = 0; s < options.bootstrap_samples; ++s) {
    Sums sums;
    for (std::size_t u = 0; u < units.size(); ++u) sums.add(units[draw_below(random, units.size())]);
    const double error = sums.standard_error();
    if (error > 0.0) result.push_back(sums.distance() / error);
  }
  std::sort(result.begin(), result.end());
  return result;
}

}  // namespace

std::size_t draw_below(std::mt19937_64& random, std::size_t bound) {
  __extension__ using Wide = unsigned __int128;
  return static_cast<std::size_t>((static_cast<Wide>(random()) * bound) >> 64U);
}

double sorted_quantile(const std::vector<double>& sorted, double probability) {
  const double place = probability * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (place - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

Estimate studentised_mean(std::span<const double> values, std::span<const std::int64_t> document,
                          const IntervalOptions& options) {
  Estimate estimate = clustered_t(values, document, options);
  constexpr std::int64_t fewest = 6;
  if (estimate.units < fewest) return estimate;
  const ResamplingUnits units = resampling_units(document, options);
  estimate.method =
      "studentised bootstrap (" + std::to_string(options.bootstrap_samples) + " samples) " + units.description;
  const std::vector<Residual> residuals = residuals_of(values, units, estimate.value);
  Sums all;
  for (const Residual& unit : residuals) all.add(unit);
  const double error = all.standard_error();
  if (error == 0.0) return estimate;  // all alike: the t interval is the point, too
  const std::vector<double> t = resampled_t(residuals, options);
  const double tail = (1.0 - options.confidence) / 2.0;
  // Where one unit has nearly everything both quantiles may lie on one side; the mean itself is never excluded.
  const double above = std::max(0.0, sorted_quantile(t, 1.0 - tail)), below = std::min(0.0, sorted_quantile(t, tail));
  estimate.interval = Interval{estimate.value - error * above, estimate.value - error * below};
  return estimate;
}

}  // namespace replayeval::metrics
