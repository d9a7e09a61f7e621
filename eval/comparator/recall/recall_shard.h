// A batch of recall documents that is done, on disk: long recall is resumable.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "eval/comparator/token_records.h"

namespace replayeval {

struct RecallShard {
  std::vector<std::vector<std::uint8_t>> right;  // [arms][answers]: 1 where the arm has it right
  std::vector<std::int64_t> item;                // [answers]: whose answer it is, by number in the cell
  double chance = 0.0;                           // summed over the documents
  Shard costs;                                   // without tokens
};

// Part `index` is one JSON file, written whole or not at all. load_recall_shard throws DamagedShard when it is not what
// was stored, or not of so many arms.
void save_recall_shard(const std::filesystem::path& folder, std::int64_t index, const RecallShard& shard);
RecallShard load_recall_shard(const std::filesystem::path& folder, std::int64_t index, std::size_t arms);

}  // namespace replayeval
