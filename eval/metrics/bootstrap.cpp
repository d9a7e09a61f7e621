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

// The distances of resampled means in their own standard errors, ascending. Resamples of (nearly) one unit alone, whose
// spread is no thousandth of `error`, are left out.
std::vector<double> resampled_t(const std::vector<Residual>& units, double error, const IntervalOptions& options) {
  std::mt19937_64 random(options.seed);
  std::vector<double> result;
  for (std::int64_t s = 0; s < options.bootstrap_samples; ++s) {
    Sums sums;
    for (std::size_t u = 0; u < units.size(); ++u) sums.add(units[draw_below(random, units.size())]);
    const double own = sums.standard_error();
    if (own > 1e-3 * error) result.push_back(sums.distance() / own);
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
  return reaching_further(clustered_t(values, document, options), values, document, options);
}

Estimate reaching_further(const Estimate& student, std::span<const double> values,
                          std::span<const std::int64_t> document, const IntervalOptions& options) {
  if (!student.interval) return student;
  const ResamplingUnits units = resampling_units(document, options);
  const std::vector<Residual> residuals = residuals_of(values, units, student.value);
  Sums all;
  for (const Residual& unit : residuals) all.add(unit);
  const double error = all.standard_error();
  const std::vector<double> t = error > 0.0 ? resampled_t(residuals, error, options) : std::vector<double>{};
  if (t.empty()) return student;
  Estimate estimate = student;
  estimate.kind = IntervalKind::bootstrap;
  estimate.p_value.reset();
  estimate.method =
      "studentised bootstrap and t (" + std::to_string(options.bootstrap_samples) + " samples) " + units.description;
  const double tail = (1.0 - options.confidence) / 2.0;
  estimate.interval->low = std::min(student.interval->low, student.value - error * sorted_quantile(t, 1.0 - tail));
  estimate.interval->high = std::max(student.interval->high, student.value - error * sorted_quantile(t, tail));
  return estimate;
}

}  // namespace replayeval::metrics
