// A run against the last release's: what changed since, and whether the two can be compared at all.
#pragma once

#include <string>

#include "reports/gate/measurement.h"

namespace replayeval::reports::gate {

// "" where workload and arm are the same question in both: one checkpoint, one text (by hashes), one arm, the
// same numerics as far as both say. Otherwise one line that says what differs.
std::string why_not_comparable(const NamedRun& run, const NamedRun& release, const std::string& workload,
                               const std::string& arm);

// "" where `row` compares the arm with what a portable baseline keeps of an arm of that name and those settings.
// Otherwise one line that says what differs.
std::string why_not_the_stored_arm(const Results& results, const Workload& workload, const StoredComparison& row);

// new - old; of speed, bytes and state errors new / old - 1. The interval of a difference is made of the two runs' own
// (MOVER: Zou & Donner, Statistics in Medicine 27, 2008) as if they were independent. They answer the same questions,
// so it is wider than it must be, never narrower. Speeds of different machines get a `doubt`.
Measurement change_since(const Rule& rule, const Measurement& old, const Measurement& now, const NamedRun& run,
                         const NamedRun& release);

}  // namespace replayeval::reports::gate
