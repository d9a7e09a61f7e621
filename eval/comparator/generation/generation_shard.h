// A part of a generation that is done, on disk: long generations are resumable.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "eval/comparator/generation/generator.h"
#include "eval/comparator/token_records.h"

namespace replayeval {

struct GenerationShard {
  std::vector<std::vector<GeneratedSequence>> sequences;  // [items][arms]
  GenerationCosts generation;
  Shard costs;  // without tokens
};

// Part `index` is one JSON file (json_shard.h). load_generation_shard throws DamagedShard when it is not what was
// stored, or not of so many items and arms.
void save_generation_shard(const std::filesystem::path& folder, std::int64_t index, const GenerationShard& shard);
GenerationShard load_generation_shard(const std::filesystem::path& folder, std::int64_t index, std::size_t items,
                                      std::size_t arms);

}  // namespace replayeval
