#include "eval/comparator/tasks/task_shard.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "eval/comparator/json_shard.h"

namespace replayeval {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// nlohmann writes the shortest text that reads back as the same double.
json scores_to_json(const TaskShard& shard) {
  json requests = json::array();
  for (const auto& request : shard.scores) {
    json arms = json::array();
    for (const tasks::RequestScore& score : request) arms.push_back({score.log_likelihood, score.is_greedy});
    requests.push_back(std::move(arms));
  }
  return requests;
}

TaskShard read(const json& part) {
  TaskShard shard;
  for (const json& request : part.at("scores")) {
    auto& arms = shard.scores.emplace_back();
    for (const json& score : request) arms.push_back({score.at(0).get<double>(), score.at(1).get<bool>()});
  }
  costs_from_json(part.at("costs"), shard.costs);
  return shard;
}

}  // namespace

bool has_task_shard(const fs::path& folder, std::int64_t index) { return has_json_shard(folder, index); }

void save_task_shard(const fs::path& folder, std::int64_t index, const TaskShard& shard) {
  save_json_shard(folder, index, {{"scores", scores_to_json(shard)}, {"costs", costs_to_json(shard.costs)}});
}

TaskShard load_task_shard(const fs::path& folder, std::int64_t index, std::size_t requests, std::size_t arms) {
  TaskShard shard;
  load_json_shard(folder, index, [&](const json& part) { shard = read(part); });
  bool fits = shard.scores.size() == requests && shard.costs.storage_counts.size() == arms;
  for (const auto& request : shard.scores) fits = fits && request.size() == arms;
  if (!fits)
    throw DamagedShard(
        fmt::format("{}: expected {} requests of {} arms", json_shard_file(folder, index).string(), requests, arms));
  return shard;
}

}  // namespace replayeval
