// A run against the last release's: what changed since, and whether the two can be compared at all.
#pragma once

#include <optional>
#include <string>

#include "reports/gate/measurement.h"

namespace replayeval::reports::gate {

// "" where there is a release and it is of the same checkpoint, baseline arm and, as far as both say, numerics.
// Otherwise one line that says what differs.
std::string why_no_release(const NamedRun& run, const std::optional<NamedRun>& release);

// "" where workload and arm are the same question in both: one text (by hashes), one arm. Otherwise one line that says
// what differs.
std::string why_not_comparable(const NamedRun& run, const NamedRun& release, const std::string& workload,
                               const std::string& arm);

// "" where `row` compares the arm with what a portable baseline keeps of an arm of that name and those settings.
// Otherwise one line that says what differs.
std::string why_not_the_stored_arm(const Results& results, const Workload& workload, const StoredComparison& row);

// Whether the two are one run's: date, times, settings and every arm's numbers are alike. False without a date.
bool are_one_run(const Results& one, const Results& other);

// new - old; of speed, bytes and state errors new / old - 1. Where both runs hold the same numbers to the bit, a
// difference is exactly 0, and so is its interval. Otherwise its interval is made of the two runs' own (MOVER: Zou &
// Donner, Statistics in Medicine 27, 2008) as if they were independent. They answer the same questions, so it is wider
// than it must be, never narrower. Speeds of different machines get a `doubt`.
Measurement change_since(const Rule& rule, const Measurement& old, const Measurement& now, const NamedRun& run,
                         const NamedRun& release);

}  // namespace replayeval::reports::gate
