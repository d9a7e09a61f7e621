#include "eval/comparator/state_error_config.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <vector>

namespace replayeval {
namespace {

constexpr std::int64_t longest_sequence = std::int64_t{1} << 24;

std::vector<std::int64_t> spread_positions(std::int64_t count, std::int64_t longest) {
  const auto first = static_cast<double>(std::min<std::int64_t>(16, longest));
  const double ratio = static_cast<double>(longest) / first;
  std::set<std::int64_t> positions;
  for (std::int64_t i = 1; i <= count; ++i) {
    const double share = count == 1 ? 1.0 : static_cast<double>(i - 1) / static_cast<double>(count - 1);
    positions.insert(std::llround(first * std::pow(ratio, share)));
  }
  return {positions.begin(), positions.end()};
}

std::vector<std::int64_t> parse_positions(const YamlMap& map, std::int64_t longest) {
  if (map.has("positions") && map.has("count"))
    map.fail("count", "stands beside positions; expected one of positions and count");
  if (longest == 0) {
    if (map.has("count"))
      map.fail("count", "means nothing where sequences may have any length; expected positions instead");
    map.require("positions", "after how many tokens states are looked at");
  }
  if (map.has("positions")) return map.integers("positions", 1, longest == 0 ? longest_sequence : longest);
  return spread_positions(map.has("count") ? map.integer("count", 1, 1024) : 8, longest);
}

std::vector<ErrorDepth> parse_depths(const YamlMap& map) {
  std::vector<ErrorDepth> depths = {ErrorDepth::local, ErrorDepth::propagated, ErrorDepth::gold};
  if (!map.has("depths")) return depths;
  const std::vector<std::string> words = map.words("depths", {"local", "propagated", "gold"});
  std::erase_if(depths, [&](ErrorDepth depth) {
    return std::find(words.begin(), words.end(), error_depth_name(depth)) == words.end();
  });
  return depths;
}

}  // namespace

StateErrorConfig parse_state_error(const YamlMap& workload, std::int64_t longest, Prompt prompt) {
  if (prompt == Prompt::prefill)
    workload.fail("state_error", "compares states that every token went through; expected prompt: decode beside it");
  const YamlMap map(workload.require("state_error", "a mapping"), workload.file(), "state_error",
                    {"sequences", "positions", "count", "depths"});
  StateErrorConfig config;
  if (map.has("sequences")) config.sequences = map.integer("sequences", 1, 1024);
  config.positions = parse_positions(map, longest);
  config.depths = parse_depths(map);
  return config;
}

nlohmann::json to_json(const StateErrorConfig& config) {
  nlohmann::json depths = nlohmann::json::array();
  for (const ErrorDepth depth : config.depths) depths.push_back(error_depth_name(depth));
  return {{"sequences", config.sequences}, {"positions", config.positions}, {"depths", depths}};
}

}  // namespace replayeval
