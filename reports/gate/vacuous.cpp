#include "reports/gate/vacuous.h"

#include <fmt/format.h>

#include <optional>

#include "reports/metric_names.h"
#include "reports/numbers.h"

namespace replayeval::reports::gate {
namespace {

bool is_empty_list(const nlohmann::json& data, const char* key) {
  const auto found = data.find(key);
  return found != data.end() && found->is_array() && found->empty();
}

// ignore_eos, or a checkpoint that has no such token, and no text that stops.
bool nothing_ends_a_text(const Workload& workload) {
  return workload.kind == "generation" && workload.data.is_object() && is_empty_list(workload.data, "end_tokens") &&
         (!workload.data.contains("stop") || is_empty_list(workload.data, "stop"));
}

std::string of_fixed_length(const Workload& workload, const std::string& name) {
  const std::int64_t limit = workload.data.value("max_tokens", std::int64_t{0});
  return fmt::format(
      "no token ends a text of this workload (`ignore_eos`), so every arm's have {} tokens: {} says nothing here",
      limit > 0 ? count_text(limit) : "all", name);
}

std::optional<double> share_of(const Workload& workload, const std::string& arm, const std::string& name) {
  const auto result = workload.arms.find(arm);
  if (result == workload.arms.end()) return std::nullopt;
  const auto metric = result->second.metrics.find(name);
  return metric == result->second.metrics.end() ? std::nullopt : std::optional(metric->second.value);
}

// Whether no value from `least` to `most` is outside.
bool holds_everywhere(const Margin& margin, double least, double most) {
  return (!margin.at_most || *margin.at_most >= most) && (!margin.at_least || *margin.at_least <= least);
}

}  // namespace

std::string why_it_cannot_fail(const Rule& rule, const Workload& workload, const std::string& baseline,
                               const std::string& name) {
  const std::string group = rule.group();
  if ((group == "delta" || group == "arm") && (name == names::length || name == names::truncated) &&
      nothing_ends_a_text(workload))
    return of_fixed_length(workload, name);
  Rule exact = rule;  // of a glob
  exact.metric = group + "." + name;
  const Scale scale = scale_of(exact);
  if (scale == Scale::share && holds_everywhere(rule.margin, 0.0, 1.0))
    return "every share lies within this margin, so it holds whatever the arm does";
  if (scale != Scale::difference || group != "delta" || rule.against == Against::release) return "";
  const std::optional<double> share = share_of(workload, baseline, name);
  if (!share || !holds_everywhere(rule.margin, -*share, 1.0 - *share)) return "";
  return fmt::format("the baseline's is {:.4g} %, so the margin holds whatever the arm does", 100.0 * *share);
}

}  // namespace replayeval::reports::gate
