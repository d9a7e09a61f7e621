// What a workload's `state_error` asks for: which sequences' states are compared, where, and at which depths.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>

#include "eval/comparator/run_config.h"
#include "eval/comparator/yaml_map.h"

namespace replayeval {

// `longest`: tokens that no sequence exceeds; `count`, and positions by default, are spread up to it. Where it is not
// known before the data are read (0), positions must be given. Throws ConfigError, also beside `prompt: prefill`:
// states are compared that every token went through.
StateErrorConfig parse_state_error(const YamlMap& workload, std::int64_t longest, Prompt prompt);

// As results.json holds it, defaults filled in.
nlohmann::json to_json(const StateErrorConfig& config);

}  // namespace replayeval
