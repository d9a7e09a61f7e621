// A generate_until task's texts under all arms.
#pragma once

#include <filesystem>
#include <vector>

#include "datasets/tasks/task_metrics.h"
#include "eval/comparator/generation/generation_parts.h"
#include "eval/comparator/generation/generation_summary.h"
#include "eval/comparator/perplexity.h"
#include "eval/comparator/tasks/task_requests.h"

namespace replayeval {

struct TaskTexts {
  std::vector<std::vector<tasks::DocumentResponse>> responses;  // [documents][arms]
  GeneratedTexts generated;                                     // a sequence a document and repeat, in order
  Shard costs;                                                  // without tokens
  nlohmann::json facts;                                         // of how they came about, for the results' data
};

// Ends a text as lm-evaluation-harness's `hf` model does: at a stop string, an end-of-sequence token or max_gen_toks.
// Goes on after the parts that an earlier run left in `shards`. Throws datasets::DataError naming a document whose
// sampling cannot be, and as generate().
TaskTexts generate_task(const RunContext& context, const WorkloadConfig& workload, const TaskRequests& task,
                        const std::filesystem::path& shards);

}  // namespace replayeval
