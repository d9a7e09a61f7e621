// The task workload: the documents of a downstream task, asked of all arms with the prompts that lm-evaluation-harness
// made, scored as it scores them, and compared pairwise.
#pragma once

#include <filesystem>

#include "datasets/tasks/task_source.h"
#include "eval/comparator/perplexity.h"
#include "reports/results.h"

namespace replayeval {

// Opens and checks the workload's documents, and that there is a way to score them. Throws datasets::DataError.
tasks::TaskSource open_task(const WorkloadConfig& workload);

// Where it leaves its work: shards while it runs, one file of samples an arm at the end.
struct TaskFolders {
  std::filesystem::path shards, samples;
};

// Goes on after the parts that an earlier run left. samples/WORKLOAD.ARM.jsonl has the harness's own form. Throws
// Interrupted between batches when asked to stop, datasets::DataError naming file and line, and std::runtime_error on
// logits that are not finite.
reports::Workload run_task(const RunContext& context, const WorkloadConfig& workload, const TaskFolders& folders);

}  // namespace replayeval
