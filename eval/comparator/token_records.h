// What a perplexity run keeps of every scored token, for all arms; shards of it make long runs resumable.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "eval/comparator/storage_totals.h"
#include "eval/executors/kernel_clock.h"
#include "eval/metrics/divergence.h"

namespace replayeval {

struct TokenRecords {
  std::vector<std::int64_t> document;         // number of the token's document
  std::vector<std::int64_t> position;         // in its document
  std::vector<std::int64_t> window_position;  // tokens that the model had decoded in this window before predicting it
  std::vector<std::int64_t> target;           // the token id that was predicted
  std::vector<metrics::TokenDivergence> arms;
  // Where a stored baseline's hidden states are compared with (stored_baseline.h): by pair, the stored arm's ...
  std::vector<metrics::TokenDivergence> stored;
  std::vector<metrics::TokenDivergence> against;  // ... and the run's arm's, with that as its baseline

  std::size_t size() const { return target.size(); }
  void append(TokenRecords&& other);
  // By document, then position. Returns which of the tokens each one was before.
  std::vector<std::size_t> sort_by_text();
};

// A piece of work that is done: its tokens and what it cost.
struct Shard {
  TokenRecords tokens;
  std::int64_t decoded_tokens = 0;  // per arm
  double seconds = 0.0;             // wall clock
  std::vector<KernelSeconds> kernel_seconds;
  StorageTotals storage_counts;
};

void add_costs(Shard& totals, const Shard& shard);  // all but the tokens

// A shard without its tokens.
nlohmann::json costs_to_json(const Shard& shard);
void costs_from_json(const nlohmann::json& json, Shard& shard);

// A shard that is not as save_shard left it; the message names the file.
class DamagedShard : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Shard `index` of a folder: NAME.npy with the tokens, and NAME.json with costs and both parts' SHA-256, which is
// written last. load_shard throws DamagedShard when a file is missing, is not what its hash says, or is of another
// shape than `arms` and `pairs` (of stored and against) ask for.
bool has_shard(const std::filesystem::path& folder, std::int64_t index);
void save_shard(const std::filesystem::path& folder, std::int64_t index, const Shard& shard);
Shard load_shard(const std::filesystem::path& folder, std::int64_t index, std::size_t arms, std::size_t pairs = 0);

}  // namespace replayeval
