// The recall workload: synthetic documents by kind, length and depth, answered by all arms (datasets/recall/recall.h).
#pragma once

#include <filesystem>
#include <memory>
#include <vector>

#include "eval/comparator/perplexity.h"
#include "reports/results.h"

namespace replayeval {

// The workload's tasks. Throws datasets::DataError.
std::vector<datasets::RecallTask> open_recall(const WorkloadConfig& workload,
                                              const std::shared_ptr<const datasets::Tokenizer>& tokenizer);

// Whether every document of every length can be made. Throws ConfigError naming the task's line.
void check_recall(const WorkloadConfig& workload, std::vector<datasets::RecallTask>& tasks);

// Goes on after the parts that an earlier run left in `shards`. Throws Interrupted when asked to stop,
// std::runtime_error on logits that are not finite.
reports::Workload run_recall(const RunContext& context, const WorkloadConfig& workload,
                             const std::filesystem::path& shards);

}  // namespace replayeval
