// A part of a task's requests that is done, on disk: long tasks are resumable.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "datasets/tasks/task_metrics.h"
#include "eval/comparator/token_records.h"

namespace replayeval {

struct TaskShard {
  std::vector<std::vector<tasks::RequestScore>> scores;  // [requests][arms]
  Shard costs;                                           // without tokens
};

// Part `index` is one JSON file, written whole or not at all. load_task_shard throws DamagedShard when it is not what
// was stored, or not of so many requests and arms.
bool has_task_shard(const std::filesystem::path& folder, std::int64_t index);
void save_task_shard(const std::filesystem::path& folder, std::int64_t index, const TaskShard& shard);
TaskShard load_task_shard(const std::filesystem::path& folder, std::int64_t index, std::size_t requests,
                          std::size_t arms);

}  // namespace replayeval
