// The recall workload: synthetic documents by kind, length and depth, answered by all arms (datasets/recall/recall.h).
#pragma once

#include "eval/comparator/perplexity.h"
#include "reports/results.h"

namespace replayeval {

// Opens and checks the workload's tasks. Throws datasets::DataError.
std::vector<datasets::RecallTask> open_recall(const WorkloadConfig& workload,
                                              const std::shared_ptr<const datasets::Tokenizer>& tokenizer);

// Throws Interrupted between cells when asked to stop (the workload then begins again), std::runtime_error on logits
// that are not finite, datasets::DataError on documents that cannot be made.
reports::Workload run_recall(const RunContext& context, const WorkloadConfig& workload);

}  // namespace replayeval
