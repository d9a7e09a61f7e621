#include "eval/metrics/score_interval.h"

#include <algorithm>
#include <boost/math/distributions/normal.hpp>
#include <cmath>

namespace replayeval::metrics {
namespace {

// Where the falling statistic crosses `level`, between low (above it) and high (below it).
double crossing(const DiscordantPairs& pairs, double level, double low, double high) {
  for (int step = 0; step < 100; ++step) {
    const double middle = 0.5 * (low + high);
    (score_statistic(pairs, middle) > level ? low : high) = middle;
  }
  return 0.5 * (low + high);
}

}  // namespace

double score_variance(const DiscordantPairs& pairs, double delta) {
  const double n = pairs.n;
  // The restricted maximum of the likelihood solves 2n q² + linear q + constant = 0 for q, the share of lost pairs.
  const double linear = (2.0 * n - pairs.gained + pairs.lost) * delta - pairs.gained - pairs.lost;
  const double constant = -pairs.lost * delta * (1.0 - delta);
  const double root = std::sqrt(std::max(0.0, linear * linear - 8.0 * n * constant));
  const double lost_share = std::max({0.0, -delta, (root - linear) / (4.0 * n)});
  return 2.0 * lost_share + delta * (1.0 - delta);
}

double score_statistic(const DiscordantPairs& pairs, double delta) {
  const double variance = pairs.n * score_variance(pairs, delta);
  const double distance = pairs.gained - pairs.lost - pairs.n * delta;
  if (distance == 0.0) return 0.0;
  return variance > 0.0 ? distance / std::sqrt(variance) : std::copysign(HUGE_VAL, distance);
}

Interval score_interval(const DiscordantPairs& pairs, double confidence) {
  const double z = boost::math::quantile(boost::math::normal(), 0.5 + confidence / 2.0);
  return {crossing(pairs, z, -1.0, pairs.delta()), crossing(pairs, -z, pairs.delta(), 1.0)};
}

}  // namespace replayeval::metrics
