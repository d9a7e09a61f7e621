#include "reports/verdict.h"

#include <gmock/gmock.h>

#include "tests/reports/sample_results.h"

namespace replayeval::reports {
namespace {

using testing::HasSubstr;

Verdict sample_verdict(const std::string& arm) { return verdict(sample_results().workloads[0], arm); }

TEST(Verdict, IdenticalArms) {
  EXPECT_EQ(sample_verdict("exact_float32_again").change, Change::identical);
  EXPECT_THAT(sample_verdict("exact_float32_again").text, HasSubstr("identical to the baseline"));
}

TEST(Verdict, ADeltaOfZeroIsNotIdentityWhileTheDistributionMoved) {
  Workload workload = sample_results().workloads[0];
  workload.divergence["exact_float32_again"]["kl_max"].value = 1e-9;
  EXPECT_EQ(verdict(workload, "exact_float32_again").change, Change::none);
  workload = sample_results().workloads[0];
  workload.divergence.erase("exact_float32_again");
  EXPECT_EQ(verdict(workload, "exact_float32_again").change, Change::none) << "nothing is known of the distribution";
}

TEST(Verdict, AnIntervalAroundZeroIsNoMeasurableChange) {
  EXPECT_EQ(sample_verdict("replay_float32").change, Change::none);
  EXPECT_EQ(sample_verdict("replay_float32").text, "no measurable change: ΔPPL +1.2e-06 % [-3.2e-06, +5.6e-06] (95 %)");
}

TEST(Verdict, DirectionsAndSizes) {
  EXPECT_EQ(sample_verdict("exact_bfloat16").change, Change::worse);
  EXPECT_EQ(sample_verdict("exact_bfloat16").text,
            "perplexity rises noticeably: ΔPPL +0.250 % [+0.210, +0.290] (95 %)");
  EXPECT_EQ(sample_verdict("replay_float32_bfloat16").change, Change::better);
  EXPECT_THAT(sample_verdict("replay_float32_bfloat16").text, HasSubstr("perplexity falls slightly"));
  EXPECT_THAT(sample_verdict("replay_bfloat16").text, HasSubstr("rises much"));
}

TEST(Verdict, AnIntervalThatIsTooWideSaysNothing) {
  Workload workload = sample_results().workloads[0];
  Delta& delta = workload.deltas["replay_float32"]["perplexity_relative"];
  delta.low = -0.0099;
  delta.high = 0.0099;
  EXPECT_EQ(verdict(workload, "replay_float32").change, Change::none);
  delta.low = -0.0101;
  delta.high = 0.0101;
  EXPECT_EQ(verdict(workload, "replay_float32").change, Change::imprecise);
  EXPECT_THAT(verdict(workload, "replay_float32").text, HasSubstr("too few documents to tell: ΔPPL"));
  delta.low = 0.001;
  delta.high = 0.051;
  EXPECT_EQ(verdict(workload, "replay_float32").change, Change::worse) << "it is clear of zero, however wide";
}

TEST(Verdict, TintsTellWhatIsKnown) {
  const auto tint = [](Change change, double size = HUGE_VAL) { return tint_of({change, "", size, 0.0}); };
  EXPECT_EQ(tint(Change::identical), Tint::good);
  EXPECT_EQ(tint(Change::none), Tint::good);
  EXPECT_EQ(tint(Change::worse), Tint::bad);
  EXPECT_EQ(tint(Change::worse, 2e-8), Tint::warning) << "a trace";
  EXPECT_EQ(tint(Change::better), Tint::warning) << "a deviation all the same";
  EXPECT_EQ(tint(Change::imprecise), Tint::dim);
  EXPECT_EQ(tint(Change::unknown), Tint::dim);
}

TEST(Verdict, ChanceIsWhatTheConfidenceLeavesToOneSide) {
  EXPECT_NEAR(sample_verdict("replay_float32").chance, 0.025, 1e-12);
  EXPECT_NEAR(sample_verdict("exact_bfloat16").chance, 0.025, 1e-12);
  EXPECT_EQ(sample_verdict("exact_float32_again").chance, 0.0) << "what is identical is not a matter of chance";
}

TEST(Verdict, WithoutIntervalOrDelta) {
  Workload workload = sample_results().workloads[0];
  Delta& delta = workload.deltas["exact_bfloat16"]["perplexity_relative"];
  delta.low = delta.high = delta.confidence = std::nullopt;
  EXPECT_EQ(verdict(workload, "exact_bfloat16").change, Change::unknown);
  EXPECT_THAT(verdict(workload, "exact_bfloat16").text, HasSubstr("without an interval"));
  workload.deltas.clear();
  EXPECT_EQ(verdict(workload, "exact_bfloat16").change, Change::unknown);
}

Workload recall_of(const std::vector<std::pair<std::string, Delta>>& tasks) {
  Workload workload;
  workload.name = "recall";
  workload.kind = "recall";
  for (const auto& [task, delta] : tasks) {
    workload.recall.push_back({.task = task,
                               .kind = task,
                               .length = 512,
                               .depth = {},
                               .documents = 4,
                               .chance = 0.0,
                               .signal = true,
                               .accuracy = {},
                               .delta = {}});
    workload.deltas["arm"]["accuracy/" + task] = delta;
  }
  return workload;
}

Delta points_of(double value, double half_width) {
  return {.value = value,
          .low = value - half_width,
          .high = value + half_width,
          .p_value = {},
          .confidence = 0.95,
          .method = "paired"};
}

TEST(RecallVerdict, IntervalsThatAreClearOfZeroDecide) {
  const auto said = [](const std::vector<std::pair<std::string, Delta>>& tasks) {
    return verdict(recall_of(tasks), "arm");
  };
  EXPECT_EQ(said({{"facts", points_of(-0.1, 0.05)}, {"needle", points_of(0.0, 0.1)}}).change, Change::worse);
  EXPECT_EQ(said({{"facts", points_of(-0.1, 0.05)}, {"needle", points_of(0.0, 0.1)}}).text,
            "recalls less: facts -10.0 [-15.0, -5.0] points");
  EXPECT_EQ(said({{"facts", points_of(0.1, 0.05)}}).change, Change::better);
  EXPECT_EQ(said({{"facts", points_of(0.1, 0.05)}, {"needle", points_of(-0.1, 0.05)}}).change, Change::unknown);
  EXPECT_EQ(said({{"facts", points_of(0.01, 0.04)}}).text, "no measurable change of accuracy in any of 1 task");
  EXPECT_EQ(said({{"facts", points_of(0.0, 0.0)}, {"needle", points_of(0.0, 0.1)}}).text,
            "no change of accuracy in any of 2 tasks (too few documents to tell in 1)");
  EXPECT_EQ(said({{"facts", points_of(0.02, 0.08)}, {"needle", points_of(0.0, 0.1)}}).change, Change::imprecise);
  EXPECT_EQ(said({{"facts", points_of(0.02, 0.08)}, {"needle", points_of(0.0, 0.1)}}).text,
            "too few documents to tell: no measurable change of accuracy in any of 2 tasks");
  EXPECT_NEAR(said({{"facts", points_of(0.0, 0.01)}, {"needle", points_of(0.0, 0.01)}}).chance, 1.0 - 0.975 * 0.975,
              1e-12);
  EXPECT_EQ(said({}).change, Change::unknown);
}

}  // namespace
}  // namespace replayeval::reports
