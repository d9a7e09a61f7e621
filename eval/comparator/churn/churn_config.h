// A churn workload as a run's configuration writes it.
#pragma once

#include <yaml-cpp/yaml.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "eval/comparator/run_config.h"

namespace replayeval {

// Throws ConfigError: "FILE:LINE:COL: key 'KEY': expected ..., found ...".
WorkloadConfig parse_churn_workload(const YAML::Node& node, const std::filesystem::path& file);

// As results.json holds it, defaults filled in.
nlohmann::json churn_to_json(const WorkloadConfig& workload);

}  // namespace replayeval
