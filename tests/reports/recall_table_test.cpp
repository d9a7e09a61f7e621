#include "reports/recall_table.h"

#include <gmock/gmock.h>

#include "reports/markdown.h"
#include "reports/verdict.h"

namespace replayeval::reports {
namespace {

using testing::HasSubstr;
using testing::Not;

// `right` of `answers` of the baseline and of an arm in a cell of two documents.
RecallCell cell(const std::string& task, std::int64_t length, double chance, bool signal, double right, double of_arm,
                std::int64_t answers) {
  RecallCell made;
  made.task = made.kind = task;
  made.length = length;
  made.documents = 2;
  made.chance = chance;
  made.signal = signal;
  const auto n = static_cast<double>(answers);
  made.accuracy["exact"] = {right / n, {}, {}, answers};
  made.accuracy["replay"] = {of_arm / n, {}, {}, answers};
  made.delta["replay"].value = (of_arm - right) / n;
  return made;
}

Results results_of(const std::vector<RecallCell>& cells) {
  Results results;
  results.baseline = "exact";
  for (const char* arm : {"exact", "replay"})
    results.arms.push_back({{"name", arm}, {"executor", arm}, {"state_storage", {{"dtype", "float32"}}}});
  results.config = results.checkpoint = nlohmann::json::object();
  Workload& workload = results.workloads.emplace_back();
  workload.name = workload.kind = "recall";
  workload.data = nlohmann::json::object();
  workload.recall = cells;
  return results;
}

// With a pooled accuracy of 64 answers and its delta.
Results pooled_results(std::int64_t answers) {
  Results results = results_of({cell("facts", 512, 0.1, true, 32, 31, 32), cell("facts", 256, 0.1, true, 32, 32, 32),
                                cell("facts", 128, 0.1, false, 3, 3, 32)});
  Workload& workload = results.workloads[0];
  workload.arms["exact"].metrics["accuracy/facts"] = {1.0, 0.9, 1.0, answers};
  workload.arms["replay"].metrics["accuracy/facts"] = {0.984375, 0.9, 0.99987, answers};
  Delta& delta = workload.deltas["replay"]["accuracy/facts"];
  delta = {.value = -0.015625, .low = -0.05, .high = 0.0001, .p_value = 1.0, .confidence = 0.95, .method = "paired"};
  return results;
}

std::string table_of(const Results& results) { return recall_table(results, results.workloads[0]).render(100, false); }

TEST(RecallTable, NumbersHaveTheSameDecimalsAndSayWhatTheyAreOf) {
  const std::string table = table_of(pooled_results(64));
  EXPECT_THAT(table, HasSubstr("documents  answers"));
  EXPECT_THAT(table, HasSubstr("100.0 [90.0, 100.0]"));
  EXPECT_THAT(table, HasSubstr("98.4 [90.0, 100.0]  -1.6 [-5.0, 0.0]  1.0          4       64"));
  EXPECT_THAT(table_of(pooled_results(20'000)), HasSubstr("98.44 [90.00, 99.99]  -1.56 [-5.00, +0.01]"));
  const std::string report = markdown_report(pooled_results(64), {});
  EXPECT_THAT(report, HasSubstr("| 98.4 [90.0, 100.0] | -1.6 [-5.0, 0.0] | 1.0 | 4 | 64 |"));
  EXPECT_THAT(report, HasSubstr("| 96.9 (-3.1) |"));
  EXPECT_THAT(report, HasSubstr("| 9.4 (no signal) |"));
}

TEST(RecallTable, NoSignalIsNotTooFewAnswers) {
  const Results results =
      results_of({cell("facts", 512, 0.625, false, 4, 4, 4), cell("facts", 256, 0.5, false, 3, 4, 4),
                  cell("copying", 256, 0.0, false, 0, 0, 4), cell("copying", 512, 0.0, true, 4, 4, 4)});
  const Workload& workload = results.workloads[0];
  EXPECT_EQ(recall_without_signal(workload),
            "facts: too few answers to tell the baseline from a guess in 2 of 2 cells (7 of 8 right, chance 56 %)\n"
            "copying: no signal in 1 of 2 cells (the baseline is no better than a guess: 0 of 4 right, chance 0 %)\n");
  EXPECT_TRUE(recall_table(results, workload).empty());
  EXPECT_EQ(recall_verdict(workload, "replay").text, "too few answers to tell the baseline from a guess in any task");
  const std::string report = markdown_report(results, {});
  EXPECT_THAT(report, HasSubstr("- facts: too few answers to tell the baseline from a guess in 2 of 2 cells"));
  EXPECT_THAT(report, HasSubstr("| 100.0 (too few answers) |"));
  EXPECT_THAT(report, HasSubstr("| 0.0 (no signal) |"));
  EXPECT_THAT(report, Not(HasSubstr("| documents | answers |")));
  const Results silent = results_of({cell("copying", 256, 0.5, false, 2, 4, 4)});
  EXPECT_EQ(recall_verdict(silent.workloads[0], "replay").text, "no task that the baseline has a signal on");
}

}  // namespace
}  // namespace replayeval::reports
