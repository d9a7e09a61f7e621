// From a task's per-document metrics to the numbers, intervals and tests of a results file.
#pragma once

#include <vector>

#include "datasets/tasks/task_metrics.h"
#include "datasets/tasks/task_totals.h"
#include "eval/comparator/perplexity.h"
#include "reports/results.h"

namespace replayeval {

// Fills arms (each metric, and METRIC_stderr as the harness computes it), deltas, and in data: `metrics`, a list of
// {name, documents, higher_is_better, delta, unit} (delta: its key in `deltas`; unit: points, percent or none);
// `equivalence` by arm and metric, if the workload has a margin; `detectable`: the smallest accuracy difference that as
// many documents show (80 % power); with a margin also `needed`: how many would show a difference of the margin
// (to_detect_margin) and equivalence within it (to_show_equivalence). Metrics of a filter other than "none" are
// METRIC,FILTER. `arms`: one an arm, in order.
//
// 0/1 metrics: Clopper-Pearson, and McNemar's exact test with Tango's interval for the delta. Other means: t intervals,
// and a paired bootstrap and t ("_t") over documents. Perplexities: the same of the mean log-likelihood, transformed;
// the delta is relative ("_relative"). f1 and mcc: no interval.
//
// A number that is not finite is left out (finite_only.h); returns a sentence for each kind of them.
std::vector<std::string> summarise_task(const RunContext& context, const WorkloadConfig& workload,
                                        const std::vector<tasks::TaskTotals>& arms, reports::Workload& result);

// Fills divergence: what happened to the log-likelihoods of the requests, before any metric hides it. scores:
// [requests][arms].
void summarise_requests(const RunContext& context, const std::vector<std::vector<tasks::RequestScore>>& scores,
                        reports::Workload& result);

}  // namespace replayeval
