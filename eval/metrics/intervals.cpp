// Clustered means, their t intervals, and what is made of them.
#include <algorithm>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <stdexcept>

#include "eval/metrics/bootstrap.h"
#include "eval/metrics/resampling_units.h"
#include "eval/metrics/statistics.h"

namespace replayeval::metrics {
namespace {

// The unit of resampling: a document, or a block of one.
struct Unit {
  double sum = 0.0;
  double tokens = 0.0;
};

struct Units {
  std::vector<Unit> units;
  std::string description;  // "over 83 blocks of ~256 tokens"
  double sum = 0.0, tokens = 0.0;

  double mean() const { return sum / tokens; }
};

void check_lengths(const char* what, std::size_t given, std::size_t expected) {
  if (given != expected)
    throw std::invalid_argument(std::string(what) + " has " + std::to_string(given) + " entries, expected " +
                                std::to_string(expected));
}

Units make_units(std::span<const double> values, std::span<const std::int64_t> document,
                 const IntervalOptions& options) {
  check_lengths("document", document.size(), values.size());
  const ResamplingUnits units = resampling_units(document, options);
  Units result;
  result.description = units.description;
  for (const TokenRun& run : units.runs) {
    Unit unit;
    for (std::size_t i = run.begin; i < run.end; ++i) {
      if (!std::isfinite(values[i]))
        throw std::invalid_argument("token " + std::to_string(i) + " has a value that is not finite");
      unit.sum += values[i];
    }
    unit.tokens = static_cast<double>(run.end - run.begin);
    result.units.push_back(unit);
    result.sum += unit.sum;
    result.tokens += unit.tokens;
  }
  return result;
}

Estimate start_estimate(const Units& units, const IntervalOptions& options) {
  Estimate estimate;
  estimate.value = units.mean();
  estimate.n = static_cast<std::int64_t>(units.tokens);
  estimate.units = static_cast<std::int64_t>(units.units.size());
  estimate.confidence = options.confidence;
  return estimate;
}

// Beyond the largest number there is no end to show.
void drop_if_not_finite(Estimate& estimate) {
  if (estimate.interval && !(std::isfinite(estimate.interval->low) && std::isfinite(estimate.interval->high)))
    estimate.interval.reset();
}

// Few units that are alike say nothing of others. What rounding makes of equal ones is no spread either.
bool few_and_alike(const Estimate& estimate, double standard_error) {
  constexpr double rounding = 1e-14;
  constexpr std::int64_t many = 10;
  return estimate.units < many && standard_error <= rounding * std::abs(estimate.value);
}

// Linearised variance of the ratio sum / tokens (Cochran 1977, 6.4), with units as clusters.
Estimate t_estimate(const Units& units, const IntervalOptions& options) {
  Estimate estimate = start_estimate(units, options);
  estimate.method = "t " + units.description;
  const auto m = static_cast<double>(units.units.size());
  if (estimate.units < fewest_units_for_interval) return estimate;
  double squares = 0.0;
  for (const Unit& unit : units.units) {
    const double residual = unit.sum - estimate.value * unit.tokens;
    squares += residual * residual;
  }
  const double standard_error = std::sqrt(m / (m - 1.0) * squares) / units.tokens;
  if (few_and_alike(estimate, standard_error)) return estimate;
  const boost::math::students_t t(m - 1.0);
  const double half = boost::math::quantile(t, 0.5 + options.confidence / 2.0) * standard_error;
  estimate.interval = Interval{estimate.value - half, estimate.value + half};
  drop_if_not_finite(estimate);
  if (standard_error > 0.0)
    estimate.p_value = 2.0 * boost::math::cdf(boost::math::complement(t, std::abs(estimate.value) / standard_error));
  else
    estimate.p_value = estimate.value == 0.0 ? 1.0 : 0.0;
  return estimate;
}

MeanEstimate both_intervals(std::span<const double> values, std::span<const std::int64_t> document,
                            const IntervalOptions& options, const std::string& prefix) {
  MeanEstimate estimate;
  estimate.t = clustered_t(values, document, options);
  estimate.primary = reaching_further(estimate.t, values, document, options);
  estimate.primary.method.insert(0, prefix);
  estimate.t.method.insert(0, prefix);
  return estimate;
}

template <typename T>
std::vector<double> differences(std::span<const T> baseline, std::span<const T> arm) {
  check_lengths("arm's log-probabilities", arm.size(), baseline.size());
  std::vector<double> result(arm.size());
  for (std::size_t i = 0; i < arm.size(); ++i)
    result[i] = static_cast<double>(arm[i]) - static_cast<double>(baseline[i]);
  return result;
}

double mean_of(std::span<const double> values) {
  double sum = 0.0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

}  // namespace

MeanEstimate clustered_mean(std::span<const double> values, std::span<const std::int64_t> document,
                            const IntervalOptions& options) {
  return both_intervals(values, document, options, "");
}

MeanEstimate paired_delta(std::span<const double> baseline_log_prob, std::span<const double> arm_log_prob,
                          std::span<const std::int64_t> document, const IntervalOptions& options) {
  const std::vector<double> values = differences(baseline_log_prob, arm_log_prob);
  return both_intervals(values, document, options, "paired ");
}

MeanEstimate paired_delta(std::span<const float> baseline_log_prob, std::span<const float> arm_log_prob,
                          std::span<const std::int64_t> document, const IntervalOptions& options) {
  const std::vector<double> values = differences(baseline_log_prob, arm_log_prob);
  return both_intervals(values, document, options, "paired ");
}

Estimate clustered_t(std::span<const double> values, std::span<const std::int64_t> document,
                     const IntervalOptions& options) {
  return t_estimate(make_units(values, document, options), options);
}

Estimate perplexity(std::span<const double> log_prob, std::span<const std::int64_t> document,
                    const IntervalOptions& options) {
  Estimate estimate = clustered_t(log_prob, document, options);
  estimate.p_value.reset();  // of the mean log-likelihood being 0: nobody's question
  if (estimate.interval)
    estimate.interval = Interval{std::exp(-estimate.interval->high), std::exp(-estimate.interval->low)};
  estimate.value = std::exp(-estimate.value);
  drop_if_not_finite(estimate);
  return estimate;
}

Estimate relative_perplexity_delta(const Estimate& delta) {
  Estimate result = delta;
  const auto transform = [](double d) { return d == 0.0 ? 0.0 : std::expm1(-d); };  // no negative zero
  result.value = transform(delta.value);
  if (delta.interval) result.interval = Interval{transform(delta.interval->high), transform(delta.interval->low)};
  drop_if_not_finite(result);
  return result;
}

std::vector<BucketDelta> delta_by_position(std::span<const double> baseline_log_prob,
                                           std::span<const double> arm_log_prob, std::span<const std::int64_t> document,
                                           std::span<const std::int64_t> position, std::span<const std::int64_t> edges,
                                           const IntervalOptions& options) {
  check_lengths("arm's log-probabilities", arm_log_prob.size(), baseline_log_prob.size());
  check_lengths("document", document.size(), baseline_log_prob.size());
  check_lengths("position", position.size(), baseline_log_prob.size());
  for (std::size_t e = 1; e < edges.size(); ++e)
    if (edges[e] <= edges[e - 1])
      throw std::invalid_argument("position bucket edges must ascend: " + std::to_string(edges[e]) + " follows " +
                                  std::to_string(edges[e - 1]));
  std::vector<BucketDelta> buckets;
  for (std::size_t e = 1; e < edges.size(); ++e) {
    std::vector<double> baseline, arm;
    std::vector<std::int64_t> documents;
    for (std::size_t i = 0; i < position.size(); ++i) {
      if (position[i] < edges[e - 1] || position[i] >= edges[e]) continue;
      baseline.push_back(baseline_log_prob[i]);
      arm.push_back(arm_log_prob[i]);
      documents.push_back(document[i]);
    }
    if (baseline.empty()) continue;
    BucketDelta bucket;
    bucket.begin = edges[e - 1];
    bucket.end = edges[e];
    bucket.n = static_cast<std::int64_t>(baseline.size());
    bucket.delta = paired_delta(std::span<const double>(baseline), std::span<const double>(arm), documents, options);
    bucket.baseline_perplexity = std::exp(-mean_of(baseline));
    bucket.arm_perplexity = std::exp(-mean_of(arm));
    buckets.push_back(std::move(bucket));
  }
  return buckets;
}

}  // namespace replayeval::metrics
