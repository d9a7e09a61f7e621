#include "reports/task_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "reports/markdown.h"
#include "reports/table.h"

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
       {"0.50000", "0.12", "-25 pt [-50, -12]", "0.031", "not shown (p 0.25)", "+4.0 % [", "exact *"})
    EXPECT_THAT(table, HasSubstr(part)) << table;
}

TEST(TaskTable, VerdictFollowsTheFirstMetric) {
  Results results = task_results();
  Workload& task = results.workloads[0];
  EXPECT_EQ(task_verdict(task, "replay").change, Change::worse);
  EXPECT_THAT(task_verdict(task, "replay").text, HasSubstr("worse: Δacc -25 pt [-50, -12] (95 %)"));
  task.data["metrics"][0]["higher_is_better"] = false;
  EXPECT_EQ(task_verdict(task, "replay").change, Change::better);
  task.data["metrics"].erase(0);
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
  for (const char* part : {"### Metrics", "| acc |", "2 contexts were cut", "±2 points", "McNemar"})
    EXPECT_THAT(report, HasSubstr(part)) << report;
  EXPECT_THAT(report, Not(HasSubstr("same top-1")));
}

}  // namespace
}  // namespace replayeval::reports
