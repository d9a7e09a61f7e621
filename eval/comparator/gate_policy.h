// The gate's policy, from YAML (configs/gates/README.md describes every key). Strict, as the run's configuration is.
#pragma once

#include <filesystem>
#include <string>

#include "reports/gate/policy.h"

namespace replayeval {

// Both throw ConfigError: "FILE:LINE:COL: key 'KEY': expected ..., found ...".
reports::gate::Policy load_gate_policy(const std::filesystem::path& file);
reports::gate::Policy parse_gate_policy(const std::string& yaml, const std::filesystem::path& file);

}  // namespace replayeval
