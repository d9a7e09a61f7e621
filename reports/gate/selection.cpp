#include "reports/gate/selection.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <fnmatch.h>

#include <algorithm>
#include <set>

#include "reports/missing_workloads.h"

namespace replayeval::reports::gate {
namespace {

bool any_matches(const std::vector<std::string>& globs, const std::string& name) {
  return std::any_of(globs.begin(), globs.end(), [&](const std::string& glob) { return matches(glob, name); });
}

bool named(const std::vector<std::string>& globs, const std::string& name) {
  return std::find(globs.begin(), globs.end(), name) != globs.end();
}

bool starts_with_any(const std::string& name, const std::vector<std::string>& beginnings) {
  return std::any_of(beginnings.begin(), beginnings.end(),
                     [&](const std::string& beginning) { return name.starts_with(beginning); });
}

bool of_tokens(const std::string& name) {
  return starts_with_any(name, {"perplexity", "mean_log_likelihood", "kl_", "dp_", "same_top1", "tie_share"});
}

bool of_generations(const std::string& name) {
  return starts_with_any(name, {"length", "truncated", "looped", "repeated_", "compression_ratio", "identical", "edit_",
                                "first_divergence", "began_at_tie"});
}

// Whether a workload of this kind could have the metric.
bool could_have(const Rule& rule, const std::string& kind) {
  const std::string group = rule.group(), name = rule.pattern();
  if (group == "churn") return kind == "churn";
  if (group == "state_error") return kind == "perplexity" || kind == "recall" || kind == "task";
  if (group.starts_with("stored_")) return kind == "perplexity";
  if (group == "storage" || group == "speed" || group == "bytes") return kind != "churn";
  if (of_tokens(name)) return kind == "perplexity" || (kind == "task" && name.starts_with("perplexity"));
  if (name.starts_with("accuracy/")) return kind == "recall";
  if (of_generations(name)) return kind == "generation" || kind == "task";
  return kind == "task";
}

// Whether a workload of this kind without the metric has lost it.
bool must_have(const Rule& rule, const Workload& workload) {
  const std::string group = rule.group();
  if (workload.kind == "perplexity")
    return (group == "delta" || group == "divergence" || group == "arm") && of_tokens(rule.pattern());
  if (workload.kind == "generation")
    return (group == "delta" || group == "divergence" || group == "arm") && of_generations(rule.pattern());
  return false;
}

// Deltas and ratios are of arms other than the baseline.
bool against_baseline_arm(const Rule& rule) {
  return rule.group() == "delta" || rule.group() == "divergence" || rule.metric == "speed.over_baseline" ||
         rule.metric == "state_error.local" || rule.metric == "state_error.propagated";
}

void select_arms(const Rule& rule, const Results& results, Selection& selection) {
  std::vector<std::string> candidates;
  for (const nlohmann::json& arm : results.arms)
    if (const std::string name = arm.at("name"); !against_baseline_arm(rule) || name != results.baseline)
      candidates.push_back(name);
  for (const std::string& glob : rule.arms) {
    if (std::any_of(candidates.begin(), candidates.end(), [&](const auto& name) { return matches(glob, name); }))
      continue;
    const std::string why = glob == results.baseline && against_baseline_arm(rule)
                                ? fmt::format("arm '{}' is the baseline, which {} is taken from", glob, rule.metric)
                                : fmt::format("no arm matches '{}'", glob);
    selection.faults.push_back({"", glob, fmt::format("{}; the results have {}", why, fmt::join(candidates, ", "))});
  }
  for (const std::string& name : candidates)
    if (any_matches(rule.arms, name)) selection.arms.push_back(name);
}

// A workload that was not run leaves a gap if it would have had the metric: others of its kind tell, if there are any.
bool leaves_a_gap(const Rule& rule, const Results& results, const std::string& kind) {
  bool any = false;
  for (const Workload& workload : results.workloads) {
    if (workload.kind != kind) continue;
    if (!metrics_in(rule, workload).empty() || must_have(rule, workload)) return true;
    any = true;
  }
  return !any && could_have(rule, kind);
}

std::string kind_in_config(const Results& results, const std::string& workload) {
  for (const nlohmann::json& entry : results.config.at("workloads"))
    if (entry.value("name", "") == workload) return entry.value("kind", "");
  return "";
}

void select_workloads(const Rule& rule, const Results& results, Selection& selection) {
  std::set<std::string> names;
  for (const Workload& workload : results.workloads) {
    names.insert(workload.name);
    if (!any_matches(rule.workloads, workload.name)) continue;
    if (workload.arms.empty() && workload.kind != "churn")
      selection.faults.push_back({workload.name, "", "the workload holds no results of any arm"});
    else if (!metrics_in(rule, workload).empty() || must_have(rule, workload))
      selection.workloads.push_back(&workload);
    else if (named(rule.workloads, workload.name))
      selection.faults.push_back({workload.name, "", no_such_metric(rule, workload)});
  }
  for (const std::string& missing : missing_workloads(results)) {
    names.insert(missing);
    if (any_matches(rule.workloads, missing) &&
        (named(rule.workloads, missing) || leaves_a_gap(rule, results, kind_in_config(results, missing))))
      selection.faults.push_back({missing, "", "the config has this workload, the results do not: a partial run"});
  }
  for (const std::string& glob : rule.workloads)
    if (std::none_of(names.begin(), names.end(), [&](const auto& name) { return matches(glob, name); }))
      selection.faults.push_back(
          {glob, "", fmt::format("no workload matches '{}'; the results have {}", glob, fmt::join(names, ", "))});
}

template <typename Map>
void add_matching(const Map& metrics, const std::string& pattern, std::set<std::string>& names) {
  for (const auto& [name, unused] : metrics)
    if (matches(pattern, name)) names.insert(name);
}

template <typename Map>
void add_names(const Map& by_arm, const std::string& pattern, std::set<std::string>& names) {
  for (const auto& [arm, metrics] : by_arm) add_matching(metrics, pattern, names);
}

bool has_speed(const Workload& workload) {
  return std::any_of(workload.arms.begin(), workload.arms.end(),
                     [](const auto& arm) { return arm.second.tokens_per_second > 0.0; });
}

bool has_bytes(const Workload& workload, const std::string& name) {
  return std::any_of(workload.arms.begin(), workload.arms.end(), [&](const auto& arm) {
    return name == "ring" ? arm.second.ring_bytes.has_value() : arm.second.state_bytes.has_value();
  });
}

bool has_state_error(const Workload& workload, const std::string& depth) {
  return std::any_of(workload.state_errors.begin(), workload.state_errors.end(),
                     [&](const StateError& error) { return error.depth == depth; });
}

}  // namespace

bool matches(const std::string& glob, const std::string& name) { return ::fnmatch(glob.c_str(), name.c_str(), 0) == 0; }

std::vector<std::string> metrics_in(const Rule& rule, const Workload& workload) {
  const std::string group = rule.group(), pattern = rule.pattern();
  std::set<std::string> names;
  if (group == "delta") add_names(workload.deltas, pattern, names);
  if (group == "divergence") add_names(workload.divergence, pattern, names);
  for (const StoredComparison& row : workload.against) {
    if (group == "stored_delta") add_matching(row.deltas, pattern, names);
    if (group == "stored_divergence") add_matching(row.divergence, pattern, names);
  }
  if (group == "arm")
    for (const auto& [arm, result] : workload.arms) add_matching(result.metrics, pattern, names);
  if ((group == "speed" && has_speed(workload)) || (group == "bytes" && has_bytes(workload, pattern)) ||
      (group == "state_error" && has_state_error(workload, pattern)) ||
      (group == "storage" && !workload.storage_counts.empty()) || (group == "churn" && !workload.churn.empty()))
    names.insert(pattern);
  return {names.begin(), names.end()};
}

std::string no_such_metric(const Rule& rule, const Workload& workload) {
  Rule any = rule;
  any.metric = rule.group() + ".*";
  const std::vector<std::string> names =
      names_of_group(rule.group()).empty() ? metrics_in(any, workload) : std::vector<std::string>();
  const std::string start = fmt::format("no arm has {} in this workload of kind {}", rule.metric, workload.kind);
  return names.empty() ? start : fmt::format("{}; there are {}", start, fmt::join(names, ", "));
}

// What the rule's workloads are, none of which has the metric.
std::string nothing_matched(const Rule& rule, const Results& results) {
  std::vector<std::string> kinds;
  for (const Workload& workload : results.workloads)
    if (any_matches(rule.workloads, workload.name))
      kinds.push_back(fmt::format("'{}' of kind {}", workload.name, workload.kind));
  return fmt::format("the rule matches nothing: no workload that matches '{}' has {}; there are {}",
                     fmt::join(rule.workloads, "', '"), rule.metric, fmt::join(kinds, ", "));
}

Selection select(const Rule& rule, const Results& results) {
  Selection selection;
  select_arms(rule, results, selection);
  select_workloads(rule, results, selection);
  if (selection.faults.empty() && (selection.workloads.empty() || selection.arms.empty()))
    selection.faults.push_back({"", "", nothing_matched(rule, results)});
  return selection;
}

}  // namespace replayeval::reports::gate
