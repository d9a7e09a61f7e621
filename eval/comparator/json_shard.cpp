#include "eval/comparator/json_shard.h"

#include <fmt/format.h>

#include <fstream>

#include "datasets/regular_file.h"
#include "datasets/sha256.h"
#include "eval/comparator/token_records.h"
#include "reports/atomic_file.h"

namespace replayeval {

namespace fs = std::filesystem;
using nlohmann::json;

namespace {

// Which part of which workload it is counts, so that none passes for another.
std::string hash_of(const fs::path& file, const std::string& part) {
  return datasets::sha256_hex(
      fmt::format("{}/{}\n{}", file.parent_path().filename().string(), file.filename().string(), part));
}

}  // namespace

fs::path json_shard_file(const fs::path& folder, std::int64_t index) {
  return folder / fmt::format("{:06}.json", index);
}

bool has_json_shard(const fs::path& folder, std::int64_t index) {
  const fs::path file = json_shard_file(folder, index);
  datasets::require_regular_file(file, "a part that the run left, or nothing");
  return fs::exists(file);
}

void save_json_shard(const fs::path& folder, std::int64_t index, const json& part) {
  fs::create_directories(folder);
  const fs::path file = json_shard_file(folder, index);
  const json said = {{"part", part}, {"sha256", hash_of(file, part.dump())}};
  reports::write_file_atomically(file, said.dump());
}

void load_json_shard(const fs::path& folder, std::int64_t index, const std::function<void(const json&)>& read) {
  const fs::path file = json_shard_file(folder, index);
  try {
    std::ifstream stream(file, std::ios::binary);
    const json said = json::parse(stream);
    if (hash_of(file, said.at("part").dump()) != said.at("sha256"))
      throw DamagedShard(file.string() + ": damaged, or another part (its SHA-256 is not the one that was stored)");
    read(said.at("part"));
  } catch (const json::exception&) {
    throw DamagedShard(file.string() + ": damaged (not the JSON that was stored)");
  }
}

}  // namespace replayeval
