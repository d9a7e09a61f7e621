#include "reports/task_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "reports/markdown.h"
#include "reports/table.h"
#include "reports/task_family_table.h"

namespace replayeval::reports {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Metric plain(double value) {
  Metric metric;
  metric.value = value;
  return metric;
}

Results task_results() {
  Results results;
  results.checkpoint = {{"path", "c"}, {"model_type", "nemotron_h"}};
  results.config = {{"name", "x"}};
  results.baseline = "exact";
  for (const char* name : {"exact", "replay"})
    results.arms.push_back({{"name", name}, {"executor", "exact"}, {"state_storage", {{"dtype", "float32"}}}});
  Workload& task = results.workloads.emplace_back();
  task.name = "animals";
  task.kind = "task";
  task.data = nlohmann::json::parse(R"({"documents": 13, "margin": 0.02, "warnings": ["2 contexts were cut"],
    "metrics": [{"name": "acc", "delta": "acc", "unit": "points", "higher_is_better": true},
                {"name": "perplexity", "delta": "perplexity_relative", "unit": "percent", "higher_is_better": false}],
    "answers": {"replay": {"acc": {"both_right": 3, "gained": 1, "lost": 4, "both_wrong": 5}}},
    "detectable": {"replay": {"acc": 0.375}},
    "needed": {"replay": {"acc": {"to_detect_margin": 7854, "to_show_equivalence": 8750}}},
    "equivalence": {"replay": {"acc": {"equivalent": false, "p_value": 0.25}}}})");
  task.arms["exact"].metrics = {{"acc", plain(0.5)}, {"acc_stderr", plain(0.125)}, {"perplexity", plain(12.0)}};
  task.arms["replay"].metrics = {{"acc", plain(0.25)}, {"perplexity", plain(12.5)}};
  task.deltas["replay"]["acc"] = {-0.25, -0.5, -0.125, 0.03125, 0.95, "McNemar"};
  task.deltas["replay"]["perplexity_relative"] = {0.04, -0.01, 0.09, 0.5, 0.95, "bootstrap"};
  task.divergence["replay"]["log_likelihood_max"] = plain(0.5);
  return results;
}

TEST(TaskTable, ShowsEveryMetricOfEveryArm) {
  const Results results = task_results();
  const std::string table = task_table(results, results.workloads[0]).render(200, false);
  for (const char* part :
       {" 0.50  0.12", "-25 [-50, -12]     pt", "0.031", "not shown (p 0.25)", "+4.0 [-1.0, +9.0]  %", "exact *"})
    EXPECT_THAT(table, HasSubstr(part)) << table;
}

TEST(TaskTable, VerdictFollowsTheFirstMetric) {
  Results results = task_results();
  Workload& task = results.workloads[0];
  EXPECT_EQ(task_verdict(task, "replay").change, Change::worse);
  EXPECT_THAT(task_verdict(task, "replay").text, HasSubstr("worse: Δacc -25 pt [-50, -12] (95 %)"));
  task.data["metrics"][0]["higher_is_better"] = false;
  EXPECT_EQ(task_verdict(task, "replay").change, Change::better);
  EXPECT_THAT(task_verdict(task, "replay").text, HasSubstr("differs, for the better: Δacc"));
  task.data["metrics"].erase(0);
  EXPECT_EQ(task_verdict(task, "replay").change, Change::imprecise);
  EXPECT_THAT(task_verdict(task, "replay").text, HasSubstr("too few documents to tell: Δperplexity +4.0 % ["));
  task.deltas["replay"]["perplexity_relative"].high = 0.009;
  EXPECT_EQ(task_verdict(task, "replay").change, Change::none);
  task.divergence["replay"]["log_likelihood_max"].value = 0.0;
  EXPECT_EQ(task_verdict(task, "replay").change, Change::identical);
  EXPECT_EQ(task_verdict(task, "exact").change, Change::unknown);
}

TEST(TaskTable, StandsInTableAndReport) {
  const Results results = task_results();
  const std::string table = summary_table(results, {});
  EXPECT_THAT(table, HasSubstr("2 contexts were cut"));
  EXPECT_THAT(table, HasSubstr("worse: Δacc"));
  EXPECT_THAT(table, Not(HasSubstr("same top-1")));
  const std::string report = markdown_report(results, {});
  for (const char* part :
       {"### Metrics", "| metric | arm | value | standard error | Δ [interval] | unit of Δ | p | equivalent |",
        "| -25 [-50, -12] | pt | 0.031 |", "| +4.0 [-1.0, +9.0] | % | 0.50 |", "| acc |", "2 contexts were cut",
        "±2 points", "McNemar",
        "- acc, replay: 13 documents show a difference of 38 points four times in five; for ±2 points, "
        "7,854 would show one and 8,750 would show equivalence\n"})
    EXPECT_THAT(report, HasSubstr(part)) << report;
  EXPECT_THAT(report, Not(HasSubstr("same top-1")));
}

Results with_a_family() {
  Results results = task_results();
  results.workloads.push_back(results.workloads[0]);
  results.workloads[1].name = "plants";
  TaskFamily& family = results.task_families.emplace_back();
  family.metric = "acc";
  family.arm = "replay";
  family.tasks = {{"animals", 13, {-0.25, -0.5, -0.125, 0.03125, 0.95, "McNemar"}, 0.0625},
                  {"plants", 1300, {0.01, -0.02, 0.04, 0.5, 0.95, "McNemar"}, 0.5}};
  family.n = 1313;
  family.gained = 40;
  family.lost = 30;
  family.by_question = {0.0080, -0.0125, 0.0275, 0.25, 0.95, "MOVER"};
  family.by_task = {-0.12, -0.25, 0.01, {}, 0.95, "MOVER"};
  family.detectable = 0.0175;
  family.equivalence = Equivalence{0.02, 0.375, false, -0.01, 0.025, 0.95};
  family.documents_to_detect_margin = 1077;
  family.documents_to_show_equivalence = 1185;
  return results;
}

TEST(TaskFamilyTable, HasARowATaskAndThePooledOnes) {
  const Results results = with_a_family();
  const std::string table = task_family_table(results).render(200, false);
  for (const char* part : {"animals", "0.062", "plants", "1,300", "all, by document", "1,313", "+0.8", "0.25",
                           "not shown (p 0.38)", "all, by task", "-12"})
    EXPECT_THAT(table, HasSubstr(part)) << table;
  EXPECT_EQ(task_family_power(results),
            "acc, replay: 1,313 documents show a difference of 1.8 points four times in five; for ±2 points, 1,077 "
            "would show one and 1,185 would show equivalence\n");
}

TEST(TaskFamilyTable, SaysWhenNothingCanBeShown) {
  Results results = with_a_family();
  results.task_families[0].detectable.reset();
  results.task_families[0].documents_to_detect_margin.reset();
  EXPECT_EQ(
      task_family_power(results),
      "acc, replay: 1,313 documents: too few answers differ for a difference to be shown four times in five, were they "
      "all on one side; for ±2 points, 1,185 would show equivalence\n");
}

TEST(TaskFamilyTable, StandsInTableAndReport) {
  const Results results = with_a_family();
  EXPECT_THAT(summary_table(results, {}), HasSubstr("all tasks together"));
  const std::string report = markdown_report(results, {});
  for (const char* part : {"## All tasks together", "| acc | replay | plants | 1,300 |", "| 0.062 |", "p (Holm)",
                           "- acc, replay: 1,313 documents"})
    EXPECT_THAT(report, HasSubstr(part)) << report;
  EXPECT_THAT(markdown_report(task_results(), {}), Not(HasSubstr("All tasks together")));
}

}  // namespace
}  // namespace replayeval::reports
