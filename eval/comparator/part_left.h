// A part of the work that an earlier run has done.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <utility>

#include "eval/comparator/json_shard.h"
#include "eval/comparator/progress.h"
#include "eval/comparator/token_records.h"

namespace replayeval {

// What `load` gives for part `index` of `folder`; nothing where there is none, or where it throws DamagedShard, which
// is said on stderr: the part is then to be computed again.
template <typename Load>
auto part_left(const std::filesystem::path& folder, std::int64_t index, Progress& progress, Load load)
    -> std::optional<decltype(load())> {
  if (!has_json_shard(folder, index)) return std::nullopt;
  try {
    return load();
  } catch (const DamagedShard& damage) {
    progress.note(fmt::format("replayeval: warning: {}; this part is computed again", damage.what()));
    return std::nullopt;
  }
}

}  // namespace replayeval
