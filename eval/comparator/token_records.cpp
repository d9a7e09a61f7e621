#include "eval/comparator/token_records.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numeric>
#include <stdexcept>
#include <tuple>
#include <utility>

#include "datasets/sha256.h"
#include "eval/npy.h"
#include "reports/atomic_file.h"

namespace replayeval {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t token_rows = 4;  // document, position, window_position, target
constexpr std::size_t arm_rows = 6;    // the arrays of TokenDivergence
constexpr const char* costs_hash_key = "costs_sha256";
constexpr const char* tokens_hash_key = "tokens_sha256";  // of the .npy as it lies on the disk

fs::path shard_file(const fs::path& folder, std::int64_t index, const char* ending) {
  return folder / fmt::format("{:06}.{}", index, ending);
}

template <typename T>
void append_to(std::vector<T>& into, const std::vector<T>& from) {
  into.insert(into.end(), from.begin(), from.end());
}

void append_arms(std::vector<metrics::TokenDivergence>& into, const std::vector<metrics::TokenDivergence>& from) {
  if (into.empty()) into.resize(from.size());
  for (std::size_t arm = 0; arm < into.size(); ++arm) {
    append_to(into[arm].log_prob, from[arm].log_prob);
    append_to(into[arm].kl, from[arm].kl);
    append_to(into[arm].delta_p, from[arm].delta_p);
    append_to(into[arm].rank, from[arm].rank);
    append_to(into[arm].same_top1, from[arm].same_top1);
    append_to(into[arm].tie, from[arm].tie);
  }
}

// Of a shard's array on the disk.
std::size_t row_count(std::size_t arms, std::size_t pairs) { return token_rows + arm_rows * (arms + 2 * pairs); }

template <typename T>
void permute(std::vector<T>& values, const std::vector<std::size_t>& order) {
  std::vector<T> permuted;
  permuted.reserve(values.size());
  for (const std::size_t index : order) permuted.push_back(values[index]);
  values.swap(permuted);
}

// Calls visit(array) for each per-token array, in the order of the rows on disk.
template <typename Records, typename Visit>
void for_each_array(Records& records, Visit visit) {
  visit(records.document);
  visit(records.position);
  visit(records.window_position);
  visit(records.target);
  for (auto* arms : {&records.arms, &records.stored, &records.against}) {
    for (auto& arm : *arms) {
      visit(arm.log_prob);
      visit(arm.kl);
      visit(arm.delta_p);
      visit(arm.rank);
      visit(arm.same_top1);
      visit(arm.tie);
    }
  }
}

void require_file(const fs::path& file) {
  std::error_code ignored;
  if (!fs::is_regular_file(file, ignored)) throw DamagedShard(file.string() + ": is missing, or no file");
}

void require_hash(const fs::path& file, const std::string& hash, const nlohmann::json& expected) {
  if (hash != expected) throw DamagedShard(file.string() + ": damaged (its SHA-256 is not the one that was stored)");
}

// All of a shard but its tokens, once it is known that both files are what save_shard left.
Shard read_costs(const fs::path& json_file, const fs::path& arrays) {
  require_file(json_file);
  require_file(arrays);
  Shard shard;
  try {
    std::ifstream stream(json_file);
    const nlohmann::json said = nlohmann::json::parse(stream);
    require_hash(json_file, datasets::sha256_hex(said.at("costs").dump()), said.at(costs_hash_key));
    require_hash(arrays, datasets::sha256_file(arrays), said.at(tokens_hash_key));
    costs_from_json(said.at("costs"), shard);
  } catch (const nlohmann::json::exception&) {
    throw DamagedShard(json_file.string() + ": damaged (not the JSON that was stored)");
  }
  return shard;
}

}  // namespace

void add_costs(Shard& totals, const Shard& shard) {
  totals.decoded_tokens += shard.decoded_tokens;
  totals.seconds += shard.seconds;
  for (const KernelSeconds& entry : shard.kernel_seconds) {
    const auto same = std::find_if(totals.kernel_seconds.begin(), totals.kernel_seconds.end(), [&](const auto& total) {
      return total.arm == entry.arm && total.kernel == entry.kernel;
    });
    if (same == totals.kernel_seconds.end()) {
      totals.kernel_seconds.push_back(entry);
    } else {
      same->calls += entry.calls;
      same->seconds += entry.seconds;
    }
  }
  add_counts(totals.storage_counts, shard.storage_counts);
}

nlohmann::json costs_to_json(const Shard& shard) {
  nlohmann::json kernels = nlohmann::json::array();
  for (const KernelSeconds& entry : shard.kernel_seconds) {
    kernels.push_back(
        {{"arm", entry.arm}, {"kernel", entry.kernel}, {"calls", entry.calls}, {"seconds", entry.seconds}});
  }
  nlohmann::json counts = nlohmann::json::array();
  for (const auto& arm : shard.storage_counts) {
    nlohmann::json mixers = nlohmann::json::array();
    for (const StorageCounts& mixer : arm) mixers.push_back({mixer.saturated, mixer.subnormal, mixer.non_finite});
    counts.push_back(std::move(mixers));
  }
  return {{"decoded_tokens", shard.decoded_tokens},
          {"seconds", shard.seconds},
          {"kernel_seconds", std::move(kernels)},
          {"storage_counts", std::move(counts)}};
}

void costs_from_json(const nlohmann::json& json, Shard& shard) {
  shard.decoded_tokens = json.at("decoded_tokens");
  shard.seconds = json.at("seconds");
  for (const auto& entry : json.at("kernel_seconds")) {
    shard.kernel_seconds.push_back({entry.at("arm"), entry.at("kernel"), entry.at("calls"), entry.at("seconds")});
  }
  for (const auto& arm : json.at("storage_counts")) {
    auto& mixers = shard.storage_counts.emplace_back();
    for (const auto& mixer : arm) mixers.push_back({mixer.at(0), mixer.at(1), mixer.at(2)});
  }
}

void TokenRecords::append(TokenRecords&& other) {
  append_to(document, other.document);
  append_to(position, other.position);
  append_to(window_position, other.window_position);
  append_to(target, other.target);
  append_arms(arms, other.arms);
  append_arms(stored, other.stored);
  append_arms(against, other.against);
}

std::vector<std::size_t> TokenRecords::sort_by_text() {
  std::vector<std::size_t> order(size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return std::tie(document[a], position[a]) < std::tie(document[b], position[b]);
  });
  for_each_array(*this, [&](auto& values) { permute(values, order); });
  return order;
}

bool has_shard(const fs::path& folder, std::int64_t index) { return fs::exists(shard_file(folder, index, "json")); }

void save_shard(const fs::path& folder, std::int64_t index, const Shard& shard) {
  fs::create_directories(folder);
  const std::size_t rows = row_count(shard.tokens.arms.size(), shard.tokens.against.size());
  std::vector<double> values;
  values.reserve(rows * shard.tokens.size());
  for_each_array(shard.tokens, [&](const auto& array) {
    for (const auto value : array) values.push_back(static_cast<double>(value));
  });
  write_npy(shard_file(folder, index, "npy"),
            {static_cast<std::int64_t>(rows), static_cast<std::int64_t>(shard.tokens.size())},
            std::span<const double>(values));
  const nlohmann::json costs = costs_to_json(shard);
  const nlohmann::json said = {{"costs", costs},
                               {costs_hash_key, datasets::sha256_hex(costs.dump())},
                               {tokens_hash_key, datasets::sha256_file(shard_file(folder, index, "npy"))}};
  reports::write_file_atomically(shard_file(folder, index, "json"), said.dump());
}

Shard load_shard(const fs::path& folder, std::int64_t index, std::size_t arms, std::size_t pairs) {
  const fs::path json_file = shard_file(folder, index, "json");
  const fs::path arrays = shard_file(folder, index, "npy");
  Shard shard = read_costs(json_file, arrays);
  const auto mixers_differ = [&](const auto& arm) { return arm.size() != shard.storage_counts.front().size(); };
  if (shard.storage_counts.size() != arms ||
      std::any_of(shard.storage_counts.begin(), shard.storage_counts.end(), mixers_differ)) {
    throw DamagedShard(fmt::format("{}: expected counts of {} arms, all of the same mixers", json_file.string(), arms));
  }
  const DoubleArray stored = read_npy_double(arrays);
  const auto rows = static_cast<std::int64_t>(row_count(arms, pairs));
  if (stored.shape.size() != 2 || stored.shape[0] != rows) {
    throw DamagedShard(
        fmt::format("{}: expected {} rows for {} arms and {} stored pairs", arrays.string(), rows, arms, pairs));
  }
  shard.tokens.arms.resize(arms);
  shard.tokens.stored.resize(pairs);
  shard.tokens.against.resize(pairs);
  const auto count = static_cast<std::size_t>(stored.shape[1]);
  std::size_t at = 0;
  for_each_array(shard.tokens, [&]<typename T>(std::vector<T>& array) {
    array.reserve(count);
    for (std::size_t i = 0; i < count; ++i) array.push_back(static_cast<T>(stored.values[at++]));
  });
  return shard;
}

}  // namespace replayeval
