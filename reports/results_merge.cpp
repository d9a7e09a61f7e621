#include <fmt/format.h>

#include <algorithm>

#include "reports/results_io.h"

namespace replayeval::reports {
namespace {

void check_same(const char* key, const nlohmann::json& first, const nlohmann::json& other) {
  if (first == other) return;
  const nlohmann::json difference = nlohmann::json::diff(first, other);
  throw ResultsError(fmt::format("these results are not parts of one run: {} differs at '{}{}'", key, key,
                                 difference.at(0).at("path").get<std::string>()));
}

// A config may be renamed: `name` is where results go, and nothing else.
nlohmann::json without_name(nlohmann::json config) {
  if (config.is_object()) config.erase("name");
  return config;
}

}  // namespace

Results merge_results(const std::vector<Results>& parts) {
  if (parts.empty()) throw ResultsError("no results to merge; expected one or more");
  Results merged = parts.front();
  for (std::size_t i = 1; i < parts.size(); ++i) {
    const Results& part = parts[i];
    check_same("config", without_name(merged.config), without_name(part.config));
    check_same("checkpoint", merged.checkpoint, part.checkpoint);
    check_same("numerics", merged.numerics, part.numerics);
    check_same("arms", merged.arms, part.arms);
    check_same("baseline", merged.baseline, part.baseline);
    for (const Workload& workload : part.workloads) {
      if (std::any_of(merged.workloads.begin(), merged.workloads.end(),
                      [&](const Workload& other) { return other.name == workload.name; })) {
        throw ResultsError(fmt::format("workload '{}' is in two of these results; expected it in one", workload.name));
      }
      merged.workloads.push_back(workload);
    }
  }
  return merged;
}

}  // namespace replayeval::reports
