#include "eval/comparator/generation/generation_shard.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <stdexcept>

#include "eval/comparator/json_shard.h"

namespace replayeval {
namespace {

using nlohmann::json;

json to_json(const GeneratedSequence& sequence) {
  json ties = json::array();  // the steps that were one
  for (std::size_t step = 0; step < sequence.ties.size(); ++step)
    if (sequence.ties[step]) ties.push_back(step);
  return {{"tokens", sequence.tokens}, {"ties", ties}, {"ending", static_cast<int>(sequence.ending)}};
}

GeneratedSequence sequence_of(const json& said) {
  GeneratedSequence sequence;
  sequence.tokens = said.at("tokens").get<std::vector<std::int32_t>>();
  sequence.ending = static_cast<Ending>(said.at("ending").get<int>());
  sequence.ties.assign(sequence.tokens.size() + (sequence.ending == Ending::end_token ? 1 : 0), false);
  for (const json& step : said.at("ties")) sequence.ties.at(step.get<std::size_t>()) = true;
  return sequence;
}

json to_json(const GenerationCosts& costs) {
  return {{"steps", costs.steps},
          {"decoded_tokens", costs.decoded_tokens},
          {"generated_tokens", costs.generated_tokens},
          {"prompt_tokens", costs.prompt_tokens},
          {"prompt_seconds", costs.prompt_seconds}};
}

GenerationCosts costs_of(const json& said) {
  return {said.at("steps"), said.at("decoded_tokens"), said.at("generated_tokens"), said.at("prompt_tokens"),
          said.at("prompt_seconds")};
}

}  // namespace

void save_generation_shard(const std::filesystem::path& folder, std::int64_t index, const GenerationShard& shard) {
  json items = json::array();
  for (const auto& item : shard.sequences) {
    json arms = json::array();
    for (const GeneratedSequence& sequence : item) arms.push_back(to_json(sequence));
    items.push_back(std::move(arms));
  }
  save_json_shard(folder, index,
                  {{"sequences", std::move(items)},
                   {"generation", to_json(shard.generation)},
                   {"costs", costs_to_json(shard.costs)}});
}

GenerationShard load_generation_shard(const std::filesystem::path& folder, std::int64_t index, std::size_t items,
                                      std::size_t arms) {
  GenerationShard shard;
  load_json_shard(folder, index, [&](const json& part) {
    for (const json& item : part.at("sequences")) {
      auto& sequences = shard.sequences.emplace_back();
      for (const json& sequence : item) sequences.push_back(sequence_of(sequence));
    }
    shard.generation = costs_of(part.at("generation"));
    costs_from_json(part.at("costs"), shard.costs);
  });
  bool fits = shard.sequences.size() == items && shard.costs.storage_counts.size() == arms;
  for (const auto& item : shard.sequences) fits = fits && item.size() == arms;
  if (!fits)
    throw DamagedShard(
        fmt::format("{}: expected {} items of {} arms", json_shard_file(folder, index).string(), items, arms));
  return shard;
}

}  // namespace replayeval
