// Tango's score test and interval of the difference of two paired proportions (Statistics in Medicine 17, 1998,
// 891-908). Unlike a Wald or t interval it stays honest where few pairs differ: with none at all it is
// ±z² / (n + z²), not [0, 0].
#pragma once

#include "eval/metrics/statistics.h"

namespace replayeval::metrics {

// Of n pairs, `gained` are right in the second member only and `lost` in the first only. Counts may be fractions, as
// effective sizes are.
struct DiscordantPairs {
  double gained = 0.0, lost = 0.0, n = 0.0;

  double delta() const { return (gained - lost) / n; }
};

// (observed - delta) over its standard error where the true difference is `delta`, the share of lost pairs being the
// most likely one under that restriction. Standard normal under that hypothesis. delta in (-1, 1).
double score_statistic(const DiscordantPairs& pairs, double delta);

// Of one pair: the variance of its difference under that hypothesis, which the statistic is scaled by.
double score_variance(const DiscordantPairs& pairs, double delta);

// All deltas that a two-sided score test of level 1 - confidence does not reject.
Interval score_interval(const DiscordantPairs& pairs, double confidence);

}  // namespace replayeval::metrics
