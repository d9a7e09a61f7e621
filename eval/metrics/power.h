// What a run of a given size can see, and the size that a question needs.
//
// `discordant` is the share of pairs that differ, in (0, 1]; `confidence` and `power` are in (0, 1); `delta` and
// `margin` are accuracy differences in (0, 1]. Others throw std::invalid_argument. Numbers of pairs are of independent
// ones: with repeats divide by effective_n / n of a run.
#pragma once

#include <cstdint>
#include <optional>

#include "eval/metrics/paired_accuracy.h"

namespace replayeval::metrics {

struct Power {
  double confidence = 0.95, power = 0.8;
};

// The share of discordant pairs to plan with: half a pair is added, because having seen none is not to expect none.
double planning_discordance(const PairedAccuracy& accuracy);

// Pairs needed to find a true difference of `delta` (either sign) with a two-sided test, by Connor (Biometrics 43,
// 1987): (z_a sqrt(discordant) + z_b sqrt(discordant - delta²))² / delta². delta <= discordant.
std::int64_t pairs_to_detect(double delta, double discordant, const Power& power = {});

// The smallest true difference that `pairs` independent pairs find; nullopt if even `discordant`, the largest there can
// be, is missed.
std::optional<double> minimum_detectable_delta(double pairs, double discordant, const Power& power = {});

// Pairs needed to show equivalence within `margin` by equivalence() of paired accuracies, if arms are in truth alike:
// the size for the score test by Nam (Biometrics 53, 1997), (z_confidence sqrt(variance at the margin) + z_(1 + power)
// / 2 sqrt(discordant))² / margin². However few pairs differ, it is z_confidence² (1 - margin) / margin or more, which
// the test asks for where none does.
std::int64_t pairs_to_show_equivalence(double margin, double discordant, const Power& power = {});

// The same for the mean of paired differences by units (documents, blocks, items): `standard_error` is that of a run of
// `units` units; both positive, units >= 2.
double minimum_detectable_mean(double standard_error, const Power& power = {});
std::int64_t units_to_detect(double delta, double standard_error, std::int64_t units, const Power& power = {});
std::int64_t units_to_show_equivalence(double margin, double standard_error, std::int64_t units,
                                       const Power& power = {});

}  // namespace replayeval::metrics
