// Several tasks of a run taken together.
#pragma once

#include <vector>

#include "reports/results.h"

namespace replayeval {

// For each 0/1 metric that two or more tasks have, and each arm but the baseline, both in the order of their first
// appearance: the tasks' paired deltas with Holm's correction, their pooled delta (metrics/task_family.h), and what as
// many documents can show (metrics/power.h), as summarise_task() left the tasks' answers in `results`. Equivalence is
// tested where all the tasks have the same margin, on all documents as one sample.
std::vector<reports::TaskFamily> task_families(const reports::Results& results);

}  // namespace replayeval
