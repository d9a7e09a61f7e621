// Right and wrong answers of a baseline and an arm to the same questions.
//
// Everywhere: right[i] is 1 or 0, item[i] names the item that question i belongs to (several questions of one document,
// repeats of one prompt); answers of one item depend on each other, items do not. Arrays of unequal length, no answers,
// or a confidence outside (0, 1) throw std::invalid_argument naming what was given.
#pragma once

#include <cstdint>
#include <span>

#include "eval/metrics/score_interval.h"
#include "eval/metrics/statistics.h"

namespace replayeval::metrics {

struct PairedAccuracy {
  std::int64_t n = 0, items = 0;                                      // questions, and items they come in
  std::int64_t both_right = 0, gained = 0, lost = 0, both_wrong = 0;  // gained: only the arm; lost: only the baseline
  double baseline = 0.0, arm = 0.0;                                   // accuracies
  double effective_n = 0.0;  // independent pairs worth as much; n without repeats
  // Arm's accuracy minus the baseline's; Tango's score interval on effective_n pairs; p-value of McNemar's exact test,
  // over items where they repeat. No discordant pairs: delta 0, p-value 1 and an interval that n decides.
  Estimate delta;

  // What the interval and tests of equivalence run on: counts scaled to effective_n.
  DiscordantPairs effective_pairs() const;
};

PairedAccuracy paired_accuracy(std::span<const std::uint8_t> baseline_right, std::span<const std::uint8_t> arm_right,
                               std::span<const std::int64_t> item, double confidence = 0.95);

// One arm's accuracy with the Clopper-Pearson interval, on an effective sample size where items repeat (Korn &
// Graubard, Survey Methodology 24, 1998).
Estimate accuracy(std::span<const std::uint8_t> right, std::span<const std::int64_t> item, double confidence = 0.95);

// One-sided p-value of the accuracy being no better than `chance` (in [0, 1]): the exact binomial test, on the
// effective sample size. A cell is without signal where this is not below 1 - confidence.
double chance_p_value(std::span<const std::uint8_t> right, std::span<const std::int64_t> item, double chance,
                      double confidence = 0.95);

// Two-sided exact test of gained and lost being equally likely (McNemar 1947, by the binomial distribution): 1 where
// both are 0. Counts must not be negative.
double mcnemar_exact(std::int64_t gained, std::int64_t lost);

}  // namespace replayeval::metrics
