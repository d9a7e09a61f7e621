#include "eval/comparator/tasks/task_families.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <string>

#include "eval/comparator/estimates.h"
#include "eval/metrics/equivalence.h"
#include "eval/metrics/paired_accuracy.h"
#include "eval/metrics/power.h"
#include "eval/metrics/task_family.h"

namespace replayeval {
namespace {

using nlohmann::json;

struct Answers {
  std::int64_t both_right = 0, gained = 0, lost = 0, both_wrong = 0;
};

// What summarise_task() counted; nullopt where the metric is none of right and wrong answers.
std::optional<Answers> answers_of(const reports::Workload& workload, const std::string& arm,
                                  const std::string& metric) {
  const json::json_pointer place = json::json_pointer("/answers") / arm / metric;
  if (workload.kind != "task" || !workload.data.contains(place)) return std::nullopt;
  const json& counts = workload.data.at(place);
  return Answers{counts.at("both_right"), counts.at("gained"), counts.at("lost"), counts.at("both_wrong")};
}

// Every document is an item of its own, so counts say all there is to know.
metrics::PairedAccuracy pairs_of(const Answers& answers, double confidence) {
  std::vector<std::uint8_t> baseline, arm;
  const auto add = [&](std::int64_t count, std::uint8_t of_baseline, std::uint8_t of_arm) {
    baseline.insert(baseline.end(), static_cast<std::size_t>(count), of_baseline);
    arm.insert(arm.end(), static_cast<std::size_t>(count), of_arm);
  };
  add(answers.both_right, 1, 1);
  add(answers.gained, 0, 1);
  add(answers.lost, 1, 0);
  add(answers.both_wrong, 0, 0);
  std::vector<std::int64_t> item(arm.size());
  std::iota(item.begin(), item.end(), 0);
  return metrics::paired_accuracy(baseline, arm, item, confidence);
}

// The margin that all tasks share.
std::optional<double> common_margin(const std::vector<const reports::Workload*>& tasks) {
  std::optional<double> margin;
  for (const reports::Workload* task : tasks) {
    if (!task->data.contains("margin")) return std::nullopt;
    const double own = task->data.at("margin");
    if (margin && *margin != own) return std::nullopt;
    margin = own;
  }
  return margin;
}

void add_power(const metrics::PairedAccuracy& all, std::optional<double> margin, double confidence,
               reports::TaskFamily& family) {
  const metrics::Power power{confidence, 0.8};
  const double discordant = metrics::planning_discordance(all);
  family.detectable = metrics::minimum_detectable_delta(all.effective_n, discordant, power);
  if (!margin || *margin <= 0.0 || *margin >= 1.0 || confidence <= 0.5) return;
  const metrics::Equivalence tested = metrics::equivalence(all, *margin, confidence);
  family.equivalence = reports::Equivalence{tested.margin,       tested.p_value,       tested.equivalent,
                                            tested.interval.low, tested.interval.high, tested.confidence};
  family.documents_to_show_equivalence = metrics::pairs_to_show_equivalence(*margin, discordant, power);
  if (*margin <= discordant) family.documents_to_detect_margin = metrics::pairs_to_detect(*margin, discordant, power);
}

std::optional<reports::TaskFamily> family_of(const reports::Results& results, const std::string& arm,
                                             const std::string& metric) {
  const double confidence = results.config.value("confidence", 0.95);
  reports::TaskFamily family;
  family.metric = metric;
  family.arm = arm;
  Answers sum;
  std::vector<metrics::PairedAccuracy> pairs;
  std::vector<const reports::Workload*> tasks;
  std::vector<double> p_values;
  for (const reports::Workload& workload : results.workloads) {
    const std::optional<Answers> answers = answers_of(workload, arm, metric);
    if (!answers) continue;
    tasks.push_back(&workload);
    pairs.push_back(pairs_of(*answers, confidence));
    p_values.push_back(pairs.back().delta.p_value.value());
    family.tasks.push_back({workload.name, pairs.back().n, delta_of(pairs.back().delta), 1.0});
    sum.both_right += answers->both_right;
    sum.gained += answers->gained;
    sum.lost += answers->lost;
    sum.both_wrong += answers->both_wrong;
  }
  if (tasks.size() < 2) return std::nullopt;
  const std::vector<double> adjusted = metrics::holm(p_values);
  for (std::size_t i = 0; i < adjusted.size(); ++i) family.tasks[i].adjusted_p_value = adjusted[i];
  const metrics::PairedAccuracy all = pairs_of(sum, confidence);
  family.n = all.n;
  family.gained = all.gained;
  family.lost = all.lost;
  family.by_question = delta_of(metrics::pooled_delta(pairs, metrics::Weighting::questions));
  family.by_task = delta_of(metrics::pooled_delta(pairs, metrics::Weighting::tasks));
  add_power(all, common_margin(tasks), confidence, family);
  return family;
}

// Of all tasks, in the order of their first appearance.
std::vector<std::string> metrics_of(const reports::Results& results) {
  std::vector<std::string> names;
  for (const reports::Workload& workload : results.workloads) {
    if (workload.kind != "task" || !workload.data.contains("metrics")) continue;
    for (const json& metric : workload.data.at("metrics"))
      if (const std::string name = metric.at("name"); std::find(names.begin(), names.end(), name) == names.end())
        names.push_back(name);
  }
  return names;
}

}  // namespace

std::vector<reports::TaskFamily> task_families(const reports::Results& results) {
  std::vector<reports::TaskFamily> families;
  for (const std::string& metric : metrics_of(results))
    for (const json& arm : results.arms)
      if (arm.at("name") != results.baseline)
        if (auto family = family_of(results, arm.at("name"), metric)) families.push_back(*std::move(family));
  return families;
}

}  // namespace replayeval
