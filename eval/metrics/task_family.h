// Several tasks of one arm: correction for having asked several times, and one delta for all.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "eval/metrics/paired_accuracy.h"

namespace replayeval::metrics {

// Holm's (1979) adjusted p-values, in the order given: reject all that are below the level, and the chance of even one
// wrong rejection stays below it. p-values outside [0, 1] throw std::invalid_argument.
std::vector<double> holm(std::span<const double> p_values);

enum class Weighting : std::uint8_t {
  tasks,      // every task counts the same: the mean of the tasks' deltas, as leaderboards average
  questions,  // every question counts the same
};

// Delta over all tasks, `confidence` as theirs. The interval is made of the tasks' own score intervals (MOVER: Zou &
// Donner, Statistics in Medicine 27, 2008), so tasks without discordant pairs add their share of doubt. The p-value is
// there for Weighting::questions where no task has repeats: McNemar's exact test on all pairs. No tasks, or tasks of
// different confidence, throw std::invalid_argument. Tasks without signal are the caller's to leave out.
Estimate pooled_delta(std::span<const PairedAccuracy> tasks, Weighting weighting);

}  // namespace replayeval::metrics
