#include "reports/task_table.h"

#include <fmt/format.h>

#include <cmath>
#include <optional>
#include <vector>

#include "reports/metric_names.h"
#include "reports/numbers.h"
#include "reports/power_text.h"
#include "reports/sections.h"
#include "reports/summary.h"

namespace replayeval::reports {
namespace {

constexpr const char* absent = "–";

template <typename T>
const T* find_in(const std::map<std::string, T>& values, const std::string& name) {
  const auto found = values.find(name);
  return found == values.end() ? nullptr : &found->second;
}

const Metric* value_of(const Workload& workload, const std::string& arm, const std::string& metric) {
  const ArmResult* result = find_in(workload.arms, arm);
  return result == nullptr ? nullptr : find_in(result->metrics, metric);
}

const Delta* delta_of(const Workload& workload, const std::string& arm, const std::string& metric) {
  const auto found = workload.deltas.find(arm);
  return found == workload.deltas.end() ? nullptr : find_in(found->second, metric);
}

Spread spread_of(const Delta& delta, const TaskMetric& metric) {
  return spread(delta.value, delta.low, delta.high, metric.unit == "none" ? 1.0 : 100.0);
}

std::string unit_of(const TaskMetric& metric) {
  return metric.unit == "percent" ? "%" : metric.unit == "points" ? "pt" : "";
}

// In points or percent, with the sign that says so.
std::string delta_text(const Delta& delta, const TaskMetric& metric) {
  const Spread text = spread_of(delta, metric);
  const std::string unit = unit_of(metric);
  std::string shown = text.value + (unit.empty() ? "" : " " + unit);
  if (!text.low.empty()) shown += fmt::format(" [{}, {}]", text.low, text.high);
  return shown;
}

// The answer of the test of equivalence within the workload's margin; "" where none was asked for.
std::string equivalence_text(const Workload& workload, const std::string& arm, const std::string& metric) {
  const nlohmann::json::json_pointer place = nlohmann::json::json_pointer("/equivalence") / arm / metric;
  if (!workload.data.contains(place)) return "";
  const nlohmann::json& tested = workload.data.at(place);
  return fmt::format("{} (p {})", tested.at("equivalent").get<bool>() ? "yes" : "not shown",
                     significant(tested.at("p_value").get<double>(), 2));
}

// The cells of every metric and arm that there is a value of.
std::vector<std::vector<std::string>> rows_of(const Results& results, const Workload& workload) {
  std::vector<std::vector<std::string>> rows;
  for (const TaskMetric& metric : task_metrics(workload)) {
    for (const ArmSummary& arm : summarise(results, workload)) {
      const Metric* value = value_of(workload, arm.name, metric.name);
      if (value == nullptr) continue;
      const Metric* error = value_of(workload, arm.name, metric.name + "_stderr");
      const Delta* delta = arm.is_baseline ? nullptr : delta_of(workload, arm.name, metric.delta);
      rows.push_back({metric.name, arm.name + (arm.is_baseline ? " *" : ""),
                      rounded(value->value, error == nullptr ? half_width(value->low, value->high) : error->value, 5),
                      error == nullptr ? absent : significant(error->value, 2),
                      delta == nullptr ? "" : spread_text(spread_of(*delta, metric)),
                      delta == nullptr ? "" : unit_of(metric),
                      delta == nullptr || !delta->p_value ? "" : significant(*delta->p_value, 2),
                      equivalence_text(workload, arm.name, metric.name)});
    }
  }
  return rows;
}

template <typename T>
std::optional<T> number_at(const nlohmann::json& data, const char* list, const std::string& arm,
                           const std::string& metric, const char* key = nullptr) {
  nlohmann::json::json_pointer place = nlohmann::json::json_pointer() / std::string(list) / arm / metric;
  if (key != nullptr) place /= std::string(key);
  return data.contains(place) ? std::optional<T>(data.at(place).get<T>()) : std::nullopt;
}

// What as many documents can show of each accuracy metric and arm.
Bullets power_lines(const Workload& workload) {
  Bullets lines;
  if (!workload.data.contains("answers")) return lines;
  for (const auto& [arm, metrics] : workload.data["answers"].items()) {
    for (const auto& [metric, counts] : metrics.items()) {
      PowerNumbers numbers;
      for (const auto& [kind, count] : counts.items()) numbers.documents += count.get<std::int64_t>();
      numbers.detectable = number_at<double>(workload.data, "detectable", arm, metric);
      if (workload.data.contains("margin")) numbers.margin = workload.data["margin"].get<double>();
      numbers.to_detect_margin = number_at<std::int64_t>(workload.data, "needed", arm, metric, "to_detect_margin");
      numbers.to_show_equivalence =
          number_at<std::int64_t>(workload.data, "needed", arm, metric, "to_show_equivalence");
      lines.items.emplace_back(fmt::format("{}, {}: {}", metric, arm, power_text(numbers)));
    }
  }
  return lines;
}

bool nothing_differs(const Workload& workload, const std::string& arm) {
  const auto divergence = workload.divergence.find(arm);
  if (divergence == workload.divergence.end()) return false;
  const Metric* largest = find_in(divergence->second, "log_likelihood_max");
  const Metric* identical = find_in(divergence->second, names::identical);
  return (largest != nullptr && largest->value == 0.0) || (identical != nullptr && identical->value == 1.0);
}

}  // namespace

std::vector<TaskMetric> task_metrics(const Workload& workload) {
  std::vector<TaskMetric> metrics;
  if (!workload.data.is_object() || !workload.data.contains("metrics")) return metrics;
  for (const nlohmann::json& metric : workload.data["metrics"])
    metrics.push_back({metric.at("name"), metric.at("delta"), metric.at("unit"), metric.at("higher_is_better")});
  return metrics;
}

TextTable task_table(const Results& results, const Workload& workload) {
  TextTable table({{"metric", Align::left, 0},
                   {"arm", Align::left, 0},
                   {"value", Align::right, 0},
                   {"±", Align::right, 7},
                   {"Δ", Align::left, 9},
                   {"of Δ", Align::left, 10},
                   {"p", Align::right, 8},
                   {"equivalent", Align::left, 6}});
  for (const std::vector<std::string>& row : rows_of(results, workload)) {
    std::vector<Cell> cells;
    for (const std::string& cell : row) cells.push_back({cell});
    table.add_row(std::move(cells));
  }
  return table;
}

Verdict task_verdict(const Workload& workload, const std::string& arm) {
  const std::vector<TaskMetric> metrics = task_metrics(workload);
  const Delta* delta = metrics.empty() ? nullptr : delta_of(workload, arm, metrics.front().delta);
  if (delta == nullptr) return {.change = Change::unknown, .text = "not compared with the baseline"};
  if (nothing_differs(workload, arm))
    return {.change = Change::identical, .text = "identical to the baseline, request for request"};
  const TaskMetric& metric = metrics.front();
  if (workload.data.value("weights", "") == "random")
    return {.change = Change::unknown,
            .text = "random weights: answers differ from the baseline's, which says nothing about a model's quality"};
  std::string figures = fmt::format("Δ{} {}", metric.name, delta_text(*delta, metric));
  if (!delta->low || !delta->high)
    return {.change = Change::unknown, .text = figures + ", without an interval: too few documents to tell"};
  if (delta->confidence) figures += fmt::format(" ({:g} %)", 100.0 * *delta->confidence);
  const double chance = chance_of_worse(*delta);
  if (*delta->low <= 0.0 && *delta->high >= 0.0) {
    const double widest = metric.unit == "points"    ? widest_share
                          : metric.unit == "percent" ? widest_perplexity
                                                     : HUGE_VAL;
    if (says_nothing(*delta, widest))
      return {.change = Change::imprecise, .text = "too few documents to tell: " + figures, .chance = chance};
    return {.change = Change::none, .text = "no measurable change: " + figures, .chance = chance};
  }
  const bool worse = (*delta->low > 0.0) != metric.higher_is_better;
  return {.change = worse ? Change::worse : Change::better,
          .text = (worse ? "worse: " : "differs, for the better: ") + figures,
          .chance = chance};
}

namespace sections {

Blocks task(const Results& results, const Workload& workload) {
  Table table({"metric", "arm", "value", "standard error", "Δ [interval]", "unit of Δ", "p", "equivalent"},
              {1, 4, 5, 7});
  for (const std::vector<std::string>& row : rows_of(results, workload)) table.add_row({row.begin(), row.end()});
  if (table.empty()) return {};
  std::string text =
      "Standard errors as lm-evaluation-harness computes them, of one arm alone; Δ is paired, document by document. "
      "pt: percentage points; %: of the baseline's value.";
  if (workload.data.contains("margin"))
    text += fmt::format(" Equivalent: within ±{:g} points by two one-sided tests.",
                        100.0 * workload.data["margin"].get<double>());
  Blocks blocks = {Heading{3, "Metrics"}, table, Paragraph{text}};
  if (const Bullets power = power_lines(workload); !power.items.empty()) blocks.emplace_back(power);
  return blocks;
}

}  // namespace sections
}  // namespace replayeval::reports
