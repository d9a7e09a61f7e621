#include "eval/comparator/recall/recall_shard.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "eval/comparator/json_shard.h"

namespace replayeval {

void save_recall_shard(const std::filesystem::path& folder, std::int64_t index, const RecallShard& shard) {
  save_json_shard(
      folder, index,
      {{"right", shard.right}, {"item", shard.item}, {"chance", shard.chance}, {"costs", costs_to_json(shard.costs)}});
}

RecallShard load_recall_shard(const std::filesystem::path& folder, std::int64_t index, std::size_t arms) {
  RecallShard shard;
  load_json_shard(folder, index, [&](const nlohmann::json& part) {
    part.at("right").get_to(shard.right);
    part.at("item").get_to(shard.item);
    part.at("chance").get_to(shard.chance);
    costs_from_json(part.at("costs"), shard.costs);
  });
  bool fits = shard.right.size() == arms && shard.costs.storage_counts.size() == arms;
  for (const auto& answers : shard.right) fits = fits && answers.size() == shard.item.size();
  if (!fits)
    throw DamagedShard(fmt::format("{}: expected answers of {} arms", json_shard_file(folder, index).string(), arms));
  return shard;
}

}  // namespace replayeval
