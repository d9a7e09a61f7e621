#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "reports/results_io.h"

namespace replayeval::reports {
namespace {

// Two parts of a run and what to call them.
struct Pair {
  const Results& first;
  const Results& other;
  std::string names;
};

void check_same(const Pair& pair, const char* key, const nlohmann::json& first, const nlohmann::json& other) {
  if (first == other) return;
  const nlohmann::json difference = nlohmann::json::diff(first, other);
  throw ResultsError(fmt::format("{}: these results are not parts of one run: {} differs at '{}{}'", pair.names, key,
                                 key, difference.at(0).at("path").get<std::string>()));
}

// A config may be renamed: `name` is where results go, and nothing else.
nlohmann::json without_name(nlohmann::json config) {
  if (config.is_object()) config.erase("name");
  return config;
}

void check_parts_of_one_run(const Pair& pair) {
  check_same(pair, "config", without_name(pair.first.config), without_name(pair.other.config));
  check_same(pair, "checkpoint", pair.first.checkpoint, pair.other.checkpoint);
  check_same(pair, "numerics", pair.first.numerics, pair.other.numerics);
  check_same(pair, "arms", pair.first.arms, pair.other.arms);
  check_same(pair, "baseline", pair.first.baseline, pair.other.baseline);
}

void check_no_workload_twice(const Pair& pair) {
  for (const Workload& workload : pair.other.workloads)
    if (std::any_of(pair.first.workloads.begin(), pair.first.workloads.end(),
                    [&](const Workload& other) { return other.name == workload.name; }))
      throw ResultsError(
          fmt::format("{}: workload '{}' is in both; expected it in one of the results", pair.names, workload.name));
}

// Of a workload in the config; behind all others where the config does not name it.
std::size_t place_of(const Workload& workload, const nlohmann::json& config) {
  if (!config.is_object() || !config.contains("workloads")) return 0;
  const nlohmann::json& workloads = config["workloads"];
  const auto found = std::find_if(workloads.begin(), workloads.end(), [&](const nlohmann::json& entry) {
    return entry.is_object() && entry.contains("name") && entry["name"] == workload.name;
  });
  return static_cast<std::size_t>(found - workloads.begin());
}

}  // namespace

bool are_parts_of_one_run(const Results& first, const Results& other) {
  const Pair pair{first, other, ""};
  try {
    check_parts_of_one_run(pair);
    check_no_workload_twice(pair);
  } catch (const ResultsError&) {
    return false;
  }
  return true;
}

Results merge_results(const std::vector<NamedResults>& parts) {
  if (parts.empty()) throw ResultsError("no results to merge; expected one or more");
  for (std::size_t i = 1; i < parts.size(); ++i)
    for (std::size_t k = 0; k < i; ++k) {
      const Pair pair{parts[k].results, parts[i].results, parts[k].name + " and " + parts[i].name};
      check_parts_of_one_run(pair);
      check_no_workload_twice(pair);
    }
  Results merged = parts.front().results;
  for (std::size_t i = 1; i < parts.size(); ++i)
    merged.workloads.insert(merged.workloads.end(), parts[i].results.workloads.begin(),
                            parts[i].results.workloads.end());
  std::stable_sort(merged.workloads.begin(), merged.workloads.end(), [&](const Workload& a, const Workload& b) {
    return place_of(a, merged.config) < place_of(b, merged.config);
  });
  return merged;
}

}  // namespace replayeval::reports
