// Numbers by hand where they are fractions of powers of two, else by SciPy 1.17 as the comments say.
#include "eval/comparator/tasks/task_families.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace replayeval {
namespace {

using nlohmann::json;
using ::testing::DoubleNear;
using ::testing::HasSubstr;

json answers(std::int64_t both_right, std::int64_t gained, std::int64_t lost, std::int64_t both_wrong) {
  return {{"both_right", both_right}, {"gained", gained}, {"lost", lost}, {"both_wrong", both_wrong}};
}

void add_task(reports::Results& results, const std::string& name, const std::string& metric, json counted) {
  reports::Workload& task = results.workloads.emplace_back();
  task.name = name;
  task.kind = "task";
  task.data["metrics"] = {{{"name", metric}, {"delta", metric}, {"unit", "points"}, {"higher_is_better", true}}};
  task.data["margin"] = 0.05;
  task.data["answers"]["replay"][metric] = std::move(counted);
}

// 100 documents of which 2 were gained and 8 lost; 50 of which 1 was gained and 3 were lost.
reports::Results two_tasks() {
  reports::Results results;
  results.baseline = "exact";
  results.config = {{"confidence", 0.95}};
  for (const char* name : {"exact", "replay"}) results.arms.push_back({{"name", name}});
  add_task(results, "first", "acc", answers(70, 2, 8, 20));
  add_task(results, "second", "acc", answers(30, 1, 3, 16));
  return results;
}

TEST(TaskFamilies, TestsEachTaskAndCorrectsForTheirNumber) {
  const auto families = task_families(two_tasks());
  ASSERT_EQ(families.size(), 1U);
  const reports::TaskFamily& family = families[0];
  EXPECT_EQ(family.metric, "acc");
  EXPECT_EQ(family.arm, "replay");
  ASSERT_EQ(family.tasks.size(), 2U);
  EXPECT_EQ(family.tasks[0].workload, "first");
  EXPECT_EQ(family.tasks[0].n, 100);
  EXPECT_DOUBLE_EQ(family.tasks[0].delta.value, -0.06);
  EXPECT_DOUBLE_EQ(family.tasks[0].delta.p_value.value(), 2 * (1 + 10 + 45) / 1024.0);
  EXPECT_DOUBLE_EQ(family.tasks[1].delta.p_value.value(), 2 * (1 + 4) / 16.0);
  EXPECT_DOUBLE_EQ(family.tasks[0].adjusted_p_value, 2 * 2 * (1 + 10 + 45) / 1024.0);
  EXPECT_DOUBLE_EQ(family.tasks[1].adjusted_p_value, 0.625);
}

TEST(TaskFamilies, PoolsByDocumentAndByTask) {
  const auto families = task_families(two_tasks());
  ASSERT_EQ(families.size(), 1U);
  const reports::TaskFamily& family = families[0];
  EXPECT_EQ(family.n, 150);
  EXPECT_EQ(family.gained, 3);
  EXPECT_EQ(family.lost, 11);
  EXPECT_DOUBLE_EQ(family.by_question.value, -8 / 150.0);
  EXPECT_DOUBLE_EQ(family.by_question.p_value.value(), 2 * (1 + 14 + 91 + 364) / 16384.0);
  EXPECT_DOUBLE_EQ(family.by_task.value, -0.05);
  EXPECT_FALSE(family.by_task.p_value) << "no exact test knows of weights";
  // Tango's intervals of both tasks by brentq on his score, then the hypotenuse of their weighted arms.
  EXPECT_THAT(family.by_question.low.value(), DoubleNear(-0.11380274626, 1e-6));
  EXPECT_THAT(family.by_question.high.value(), DoubleNear(-0.00117557875, 1e-6));
  EXPECT_THAT(family.by_task.low.value(), DoubleNear(-0.11457071601, 1e-6));
  EXPECT_THAT(family.by_task.high.value(), DoubleNear(0.00658628815, 1e-6));
  EXPECT_EQ(family.by_task.confidence, 0.95);
}

TEST(TaskFamilies, SaysWhatAsManyDocumentsCanShow) {
  const auto families = task_families(two_tasks());
  ASSERT_EQ(families.size(), 1U);
  const reports::TaskFamily& family = families[0];
  // Connor's and Nam's formulas with 14.5 of 150.5 pairs discordant, the first solved by brentq; sizes are rounded up.
  EXPECT_THAT(family.detectable.value(), DoubleNear(0.0704459547, 1e-6));
  EXPECT_EQ(family.documents_to_detect_margin, 301);
  EXPECT_EQ(family.documents_to_show_equivalence, 363);
  // Tango's score at -0.05 and 0.05 by norm.sf.
  ASSERT_TRUE(family.equivalence);
  EXPECT_FALSE(family.equivalence->equivalent);
  EXPECT_THAT(family.equivalence->p_value, DoubleNear(0.5543824709, 1e-6));
  EXPECT_THAT(family.equivalence->low, DoubleNear(-0.0993582749, 1e-6));
  EXPECT_THAT(family.equivalence->high, DoubleNear(-0.0136031045, 1e-6));
}

TEST(TaskFamilies, EquivalenceNeedsOneMarginOfAll) {
  reports::Results results = two_tasks();
  results.workloads[1].data["margin"] = 0.1;
  EXPECT_FALSE(task_families(results)[0].equivalence);
  results.workloads[1].data.erase("margin");
  const reports::TaskFamily family = task_families(results)[0];
  EXPECT_FALSE(family.equivalence);
  EXPECT_FALSE(family.documents_to_show_equivalence);
  EXPECT_TRUE(family.detectable);
}

TEST(TaskFamilies, EquivalentWhereNothingDiffersOften) {
  reports::Results results = two_tasks();
  results.workloads[0].data["answers"]["replay"]["acc"] = answers(600, 1, 1, 398);
  results.workloads[1].data["answers"]["replay"]["acc"] = answers(300, 0, 0, 200);
  const reports::TaskFamily family = task_families(results)[0];
  EXPECT_TRUE(family.equivalence->equivalent);
  EXPECT_EQ(family.by_question.p_value, 1.0);
  EXPECT_EQ(family.tasks[1].delta.p_value, 1.0) << "no discordant pairs is an answer";
}

TEST(TaskFamilies, NeedTwoTasksWithTheMetric) {
  reports::Results results = two_tasks();
  results.workloads.pop_back();
  EXPECT_TRUE(task_families(results).empty());
  add_task(results, "other", "exact_match", answers(1, 2, 3, 4));
  EXPECT_TRUE(task_families(results).empty());
  results.workloads[1].kind = "recall";
  add_task(results, "third", "acc", answers(1, 2, 3, 4));
  EXPECT_EQ(task_families(results).size(), 1U);
}

TEST(TaskFamilies, EveryArmButTheBaseline) {
  reports::Results results = two_tasks();
  results.arms.push_back({{"name", "replay-2"}});
  for (reports::Workload& task : results.workloads) task.data["answers"]["replay-2"]["acc"] = answers(0, 5, 0, 5);
  const auto families = task_families(results);
  ASSERT_EQ(families.size(), 2U);
  EXPECT_EQ(families[1].arm, "replay-2");
  EXPECT_EQ(families[1].gained, 10);
  // 10 of 10 gained, twice: McNemar 2 / 2^5 each, corrected twice; together 2 / 2^10.
  EXPECT_DOUBLE_EQ(families[1].tasks[0].adjusted_p_value, 2 * 2 / 32.0);
  EXPECT_DOUBLE_EQ(families[1].by_question.p_value.value(), 2 / 1024.0);
}

}  // namespace
}  // namespace replayeval
