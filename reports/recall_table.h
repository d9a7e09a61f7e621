// Recall accuracy as tables: pooled over cells for a terminal, and by length and depth for a report.
#pragma once

#include <string>

#include "reports/results.h"
#include "reports/text_table.h"
#include "reports/verdict.h"

namespace replayeval::reports {

// A row an arm and task: accuracy over the cells with a signal, and its delta from the baseline.
TextTable recall_table(const Results& results, const Workload& workload);
// "needle_single: no signal in any of 12 cells", a line for each such task; "" where there is none.
std::string recall_without_signal(const Workload& workload);

// By the pooled accuracy of each task: a change where the interval of one of them is clear of zero.
Verdict recall_verdict(const Workload& workload, const std::string& arm);

}  // namespace replayeval::reports
