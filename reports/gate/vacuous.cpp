#include "reports/gate/vacuous.h"

#include <fmt/format.h>

#include <cmath>
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

// The rule for one of the metrics that its glob matches.
Rule named(const Rule& rule, const std::string& name) {
  Rule one = rule;
  one.metric = rule.group() + "." + name;
  return one;
}

bool is_never_negative(const Rule& rule) {
  const std::string group = rule.group(), name = rule.pattern();
  if (group == "delta" || group == "stored_delta" || rule.against == Against::release) return false;
  return group == "speed" || is_counted(group) || name.starts_with("kl_") || name == names::perplexity ||
         name == names::length || name == names::repeated_span || name == names::compression_ratio;
}

// What the number can be at all, where that is bounded.
std::optional<Interval> values_of(const Rule& rule) {
  switch (scale_of(rule)) {
    case Scale::share:
      return Interval{0.0, 1.0};
    case Scale::difference:
      return Interval{-1.0, 1.0};
    case Scale::relative:
      return rule.against == Against::release && rule.group().ends_with("delta")
                 ? std::nullopt
                 : std::optional(Interval{-1.0, HUGE_VAL});
    default:
      return is_never_negative(rule) ? std::optional(Interval{0.0, HUGE_VAL}) : std::nullopt;
  }
}

}  // namespace

std::string why_it_cannot_fail(const Rule& rule, const Workload& workload, const std::string& baseline,
                               const std::string& name) {
  const std::string group = rule.group();
  if ((group == "delta" || group == "arm") && (name == names::length || name == names::truncated) &&
      nothing_ends_a_text(workload))
    return of_fixed_length(workload, name);
  if (std::string why = why_no_value_is_outside(rule, name); !why.empty()) return why;
  if (scale_of(named(rule, name)) != Scale::difference || group != "delta" || rule.against == Against::release)
    return "";
  const std::optional<double> share = share_of(workload, baseline, name);
  if (!share || !holds_everywhere(rule.margin, -*share, 1.0 - *share)) return "";
  return fmt::format("the baseline's is {:.4g} %, so the margin holds whatever the arm does", 100.0 * *share);
}

std::string why_no_value_is_outside(const Rule& rule, const std::string& name) {
  const std::optional<Interval> values = values_of(named(rule, name));
  if (!values || !holds_everywhere(rule.margin, values->low, values->high)) return "";
  return fmt::format("no value of {}.{} lies outside this margin, so it holds whatever the arm does", rule.group(),
                     name);
}

}  // namespace replayeval::reports::gate
