// What `replayeval bench model` found, as a table and as JSON.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "eval/comparator/model_bench.h"
#include "eval/comparator/scoring_bench.h"

namespace replayeval {

struct ModelBenchReport {
  double load_seconds = 0.0, read_bandwidth = 0.0;  // bytes a second
  std::string baseline;
  std::vector<DecodeSpeed> rows;
  std::optional<ScoringSpeed> scoring;
};

void print_table(const ModelBenchReport& report);  // on stdout
nlohmann::json describe(const ModelBenchReport& report);

}  // namespace replayeval
