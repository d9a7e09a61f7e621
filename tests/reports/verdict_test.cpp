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

TEST(Verdict, WithoutIntervalOrDelta) {
  Workload workload = sample_results().workloads[0];
  Delta& delta = workload.deltas["exact_bfloat16"]["perplexity_relative"];
  delta.low = delta.high = delta.confidence = std::nullopt;
  EXPECT_EQ(verdict(workload, "exact_bfloat16").change, Change::unknown);
  EXPECT_THAT(verdict(workload, "exact_bfloat16").text, HasSubstr("without an interval"));
  workload.deltas.clear();
  EXPECT_EQ(verdict(workload, "exact_bfloat16").change, Change::unknown);
}

}  // namespace
}  // namespace replayeval::reports
