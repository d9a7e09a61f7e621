#include "eval/comparator/json_shard.h"

#include <fmt/format.h>

#include <fstream>

#include "datasets/sha256.h"
#include "eval/comparator/token_records.h"
#include "reports/atomic_file.h"

namespace replayeval {

namespace fs = std::filesystem;
using nlohmann::json;

fs::path json_shard_file(const fs::path& folder, std::int64_t index) {
  return folder / fmt::format("{:06}.json", index);
}

bool has_json_shard(const fs::path& folder, std::int64_t index) { return fs::exists(json_shard_file(folder, index)); }

void save_json_shard(const fs::path& folder, std::int64_t index, const json& part) {
  fs::create_directories(folder);
  const json said = {{"part", part}, {"sha256", datasets::sha256_hex(part.dump())}};
  reports::write_file_atomically(json_shard_file(folder, index), said.dump());
}

void load_json_shard(const fs::path& folder, std::int64_t index, const std::function<void(const json&)>& read) {
  const fs::path file = json_shard_file(folder, index);
  try {
    std::ifstream stream(file, std::ios::binary);
    const json said = json::parse(stream);
    if (datasets::sha256_hex(said.at("part").dump()) != said.at("sha256"))
      throw DamagedShard(file.string() + ": damaged (its SHA-256 is not the one that was stored)");
    read(said.at("part"));
  } catch (const json::exception&) {
    throw DamagedShard(file.string() + ": damaged (not the JSON that was stored)");
  }
}

}  // namespace replayeval
