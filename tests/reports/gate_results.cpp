#include "tests/reports/gate_results.h"

#include <cmath>
#include <string>

#include "reports/metric_names.h"
#include "tests/reports/sample_results.h"

namespace replayeval::reports {
namespace {

// The sample's ratios are rounded for reading; here they are what its log-likelihoods make of them.
void make_consistent(Workload* workload) {
  for (auto& [arm, deltas] : workload->deltas) {
    const Delta log_delta = deltas.at(names::delta_log_likelihood);
    Delta& ratio = deltas.at(names::perplexity_ratio);
    ratio.value = std::expm1(-log_delta.value);
    ratio.low = std::expm1(-*log_delta.high);
    ratio.high = std::expm1(-*log_delta.low);
    Delta& t = deltas.at(names::delta_log_likelihood_t);
    t.p_value = *t.low > 0.0 || *t.high < 0.0 ? 0.001 : 0.6;
  }
  workload->data["tokens_scored"] = 24000;
  for (PositionBucket& bucket : workload->positions)
    for (auto& [arm, delta] : bucket.delta)
      bucket.perplexity.at(arm).value = bucket.perplexity.at("exact_float32").value * std::exp(-delta.value);
}

struct Answers {
  std::int64_t both_right, gained, lost, both_wrong;
  std::int64_t n() const { return both_right + gained + lost + both_wrong; }
  double delta() const { return static_cast<double>(gained - lost) / static_cast<double>(n()); }
};

constexpr double half_width = 0.02;

Delta score_delta(double value, double half) {
  return {.value = value,
          .low = value - half,
          .high = value + half,
          .p_value = 0.4,
          .confidence = 0.95,
          .method = "paired score interval (Tango), McNemar exact over 1000 items",
          .interval_kind = "score",
          .units = 1000};
}

Workload task(const Results& results, const std::string& name, const Answers& answers) {
  Workload workload;
  workload.name = name;
  workload.kind = "task";
  workload.data = {{"sources", {{{"path", name + ".jsonl"}, {"sha256", std::string(64, 'd')}}}},
                   {"documents", answers.n()},
                   {"prompt", "prefill"}};
  const auto n = static_cast<double>(answers.n());
  for (const nlohmann::json& arm : results.arms) {
    const std::string arm_name = arm.at("name");
    const bool moved = arm_name == "replay_bfloat16";
    const double right = static_cast<double>(answers.both_right + (moved ? answers.gained : answers.lost));
    workload.arms[arm_name].metrics["acc"] = {.value = right / n, .low = {}, .high = {}, .n = answers.n()};
    workload.arms[arm_name].seconds = 1.0;
    if (arm_name == results.baseline) continue;
    workload.deltas[arm_name]["acc"] = score_delta(moved ? answers.delta() : 0.0, half_width);
    workload.data["answers"][arm_name]["acc"] = {{"both_right", answers.both_right + (moved ? 0 : answers.lost)},
                                                 {"gained", moved ? answers.gained : 0},
                                                 {"lost", moved ? answers.lost : 0},
                                                 {"both_wrong", answers.both_wrong + (moved ? 0 : answers.gained)}};
  }
  return workload;
}

}  // namespace

Results gate_results() {
  Results results = sample_results();
  make_consistent(&results.workloads.front());
  const Answers first{600, 10, 20, 370}, second{300, 5, 5, 190};
  results.workloads.push_back(task(results, "first", first));
  results.workloads.push_back(task(results, "second", second));
  results.config["workloads"] = {{{"name", "heldout"}, {"kind", "perplexity"}},
                                 {{"name", "first"}, {"kind", "task"}},
                                 {{"name", "second"}, {"kind", "task"}}};
  TaskFamily family;
  family.metric = "acc";
  family.arm = "replay_bfloat16";
  for (const std::string name : {"first", "second"})
    family.tasks.push_back({name, name == "first" ? first.n() : second.n(),
                            results.workloads[name == "first" ? 1 : 2].deltas.at(family.arm).at("acc"), 0.8});
  family.n = first.n() + second.n();
  family.gained = first.gained + second.gained;
  family.lost = first.lost + second.lost;
  family.by_question = score_delta(-10.0 / 1500.0, 0.008);
  family.by_task = score_delta(-0.005, 0.012);
  results.task_families.push_back(family);
  return results;
}

}  // namespace replayeval::reports
