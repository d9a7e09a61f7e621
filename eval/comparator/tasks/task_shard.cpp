#include "eval/comparator/tasks/task_shard.h"

#include <fmt/format.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "datasets/sha256.h"
#include "reports/atomic_file.h"

namespace replayeval {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

fs::path shard_file(const fs::path& folder, std::int64_t index) { return folder / fmt::format("{:06}.json", index); }

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

bool has_task_shard(const fs::path& folder, std::int64_t index) { return fs::exists(shard_file(folder, index)); }

void save_task_shard(const fs::path& folder, std::int64_t index, const TaskShard& shard) {
  fs::create_directories(folder);
  const json part = {{"scores", scores_to_json(shard)}, {"costs", costs_to_json(shard.costs)}};
  const json said = {{"part", part}, {"sha256", datasets::sha256_hex(part.dump())}};
  reports::write_file_atomically(shard_file(folder, index), said.dump());
}

TaskShard load_task_shard(const fs::path& folder, std::int64_t index, std::size_t requests, std::size_t arms) {
  const fs::path file = shard_file(folder, index);
  TaskShard shard;
  try {
    std::ifstream stream(file, std::ios::binary);
    const json said = json::parse(stream);
    if (datasets::sha256_hex(said.at("part").dump()) != said.at("sha256"))
      throw DamagedShard(file.string() + ": damaged (its SHA-256 is not the one that was stored)");
    shard = read(said.at("part"));
  } catch (const json::exception&) {
    throw DamagedShard(file.string() + ": damaged (not the JSON that was stored)");
  }
  bool fits = shard.scores.size() == requests && shard.costs.storage_counts.size() == arms;
  for (const auto& request : shard.scores) fits = fits && request.size() == arms;
  if (!fits) throw DamagedShard(fmt::format("{}: expected {} requests of {} arms", file.string(), requests, arms));
  return shard;
}

}  // namespace replayeval
