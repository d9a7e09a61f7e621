// Recall accuracy as tables: pooled over cells for a terminal, and by length and depth for a report.
#pragma once

#include <string>

#include "reports/results.h"
#include "reports/text_table.h"
#include "reports/verdict.h"

namespace replayeval::reports {

// A row an arm and task: accuracy over the cells with a signal, and its delta from the baseline.
TextTable recall_table(const Results& results, const Workload& workload);
// What is in no pooled figure: "copying: no signal in 1 of 2 cells (...)", "facts: too few answers to tell the
// baseline from a guess in 1 of 1 cells (4 of 4 right, chance 62 %)", a line each; "" where there is none.
std::string recall_without_signal(const Workload& workload);

// By the pooled accuracy of each task: a change where the interval of one of them is clear of zero.
Verdict recall_verdict(const Workload& workload, const std::string& arm);

}  // namespace replayeval::reports
