// Metrics of a downstream task as tables: a row a metric and arm.
#pragma once

#include <string>

#include "reports/results.h"
#include "reports/text_table.h"
#include "reports/verdict.h"

namespace replayeval::reports {

TextTable task_table(const Results& results, const Workload& workload);

// By the task's first metric. Identical: no log-likelihood of any request differs, or no generated token.
Verdict task_verdict(const Workload& workload, const std::string& arm);

}  // namespace replayeval::reports
