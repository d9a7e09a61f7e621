#include "eval/metrics/equivalence.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/math/distributions/normal.hpp>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <stdexcept>

namespace replayeval::metrics {
namespace {

void check(double margin, double largest, double confidence) {
  if (!(margin > 0.0 && margin < largest))
    throw std::invalid_argument(fmt::format("equivalence margin is {}, expected a number above 0{}", margin,
                                            std::isinf(largest) ? "" : fmt::format(" and below {}", largest)));
  if (!(confidence > 0.5 && confidence < 1.0))
    throw std::invalid_argument(
        fmt::format("confidence of an equivalence test is {}, expected a number between 0.5 and 1", confidence));
}

void decide(Equivalence& result) {
  result.p_value = std::max(result.p_not_below, result.p_not_above);
  result.equivalent = result.p_value < 1.0 - result.confidence;
}

}  // namespace

Equivalence equivalence(const PairedAccuracy& accuracy, double margin, double confidence) {
  check(margin, 1.0, confidence);
  const DiscordantPairs pairs = accuracy.effective_pairs();
  const boost::math::normal normal;
  const auto above = [&](double z) {
    if (std::isinf(z)) return z > 0.0 ? 0.0 : 1.0;
    return boost::math::cdf(boost::math::complement(normal, z));
  };
  Equivalence result;
  result.margin = margin;
  result.confidence = confidence;
  result.p_not_below = above(score_statistic(pairs, -margin));
  result.p_not_above = above(-score_statistic(pairs, margin));
  result.interval = score_interval(pairs, 2.0 * confidence - 1.0);
  decide(result);
  return result;
}

Equivalence equivalence(std::span<const double> differences, std::span<const std::int64_t> document, double margin,
                        const IntervalOptions& options) {
  check(margin, HUGE_VAL, options.confidence);
  IntervalOptions narrower = options;
  narrower.confidence = 2.0 * options.confidence - 1.0;
  const Estimate mean = clustered_t(differences, document, narrower);
  if (!mean.interval)
    throw std::invalid_argument("equivalence of too few units for an interval, expected at least 3 that differ");
  const boost::math::students_t t(static_cast<double>(mean.units) - 1.0);
  const double error = (mean.interval->high - mean.value) / boost::math::quantile(t, options.confidence);
  const auto above = [&](double distance) {
    if (error == 0.0) return distance > 0.0 ? 0.0 : 1.0;
    return boost::math::cdf(boost::math::complement(t, distance / error));
  };
  Equivalence result;
  result.margin = margin;
  result.confidence = options.confidence;
  result.p_not_below = above(mean.value + margin);
  result.p_not_above = above(margin - mean.value);
  result.interval = *mean.interval;
  decide(result);
  return result;
}

}  // namespace replayeval::metrics
