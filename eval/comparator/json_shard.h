// A part of a workload that is done, as one JSON file with the hash of it and of its place, FOLDER/INDEX.json: what
// makes long work resumable.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>

namespace replayeval {

std::filesystem::path json_shard_file(const std::filesystem::path& folder, std::int64_t index);
// Throws DataError where something else than a file is in its place.
bool has_json_shard(const std::filesystem::path& folder, std::int64_t index);

// Written whole or not at all.
void save_json_shard(const std::filesystem::path& folder, std::int64_t index, const nlohmann::json& part);

// Hands the part to `read`, whose nlohmann exceptions count as damage, too. Throws DamagedShard naming the file where
// it is not what was stored.
void load_json_shard(const std::filesystem::path& folder, std::int64_t index,
                     const std::function<void(const nlohmann::json&)>& read);

}  // namespace replayeval
