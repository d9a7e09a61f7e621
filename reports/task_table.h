// Metrics of a downstream task as tables: a row a metric and arm.
#pragma once

#include <string>
#include <vector>

#include "reports/results.h"
#include "reports/text_table.h"
#include "reports/verdict.h"

namespace replayeval::reports {

struct TaskMetric {
  std::string name;
  std::string delta;  // the name of its delta
  std::string unit;   // points | percent | none: what the delta is shown in
  bool higher_is_better = true;
};

std::vector<TaskMetric> task_metrics(const Workload& workload);  // of a task; the first one decides its verdict

TextTable task_table(const Results& results, const Workload& workload);

// By the task's first metric. Identical: no log-likelihood of any request differs, or no generated token.
Verdict task_verdict(const Workload& workload, const std::string& arm);

}  // namespace replayeval::reports
