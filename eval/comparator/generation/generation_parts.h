// All items of a workload generated under all arms, part by part, going on after those that an earlier run left.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "eval/comparator/generation/generation_shard.h"
#include "eval/comparator/generation/generator.h"
#include "eval/comparator/perplexity.h"

namespace replayeval {

struct GenerationPlan {
  std::string title;  // of the progress
  std::vector<GenerationItem> items;
  std::optional<std::int64_t> slots;  // absent: chosen here
  std::uint64_t seed = 0;
  bool prefill = true;
  std::int64_t block = 256;
  std::set<std::int32_t> end_tokens;
  std::vector<std::string> warnings;  // said before the work begins
};

struct Generated {
  std::vector<std::vector<GeneratedSequence>> sequences;  // [items][arms], in the items' order
  GenerationCosts generation;
  Shard costs;  // without tokens
  std::int64_t slots = 0;
};

// Parts are shards of `folder`. With the same build and machine the sequences are those of an undisturbed run; a
// damaged shard is named on stderr and computed again. Throws Interrupted when asked to stop, and as Generator.
Generated generate(const RunContext& context, const GenerationPlan& plan, const std::filesystem::path& folder);

// {sequences, seed, end_tokens, slots, steps, tokens_decoded, ...}: how they came about, for the results' data.
nlohmann::json generation_facts(const Generated& generated, const GenerationPlan& plan);

}  // namespace replayeval
