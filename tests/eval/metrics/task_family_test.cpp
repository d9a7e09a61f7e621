// Equivalence, several tasks, and power. Numbers "by scipy": scipy 1.17.1, ttest_1samp and norm.
#include "eval/metrics/task_family.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "eval/metrics/equivalence.h"
#include "eval/metrics/power.h"
#include "tests/temporary_folder.h"

namespace replayeval::metrics {
namespace {

using testing::DoubleNear;
using testing::ElementsAre;
using testing::HasSubstr;

PairedAccuracy task(std::size_t both, std::size_t gained, std::size_t lost, std::size_t neither,
                    double confidence = 0.95) {
  std::vector<std::uint8_t> baseline, arm;
  std::vector<std::int64_t> item(both + gained + lost + neither);
  for (std::size_t i = 0; i < item.size(); ++i) {
    const bool is_both = i < both, is_gained = !is_both && i < both + gained;
    const bool is_lost = !is_both && !is_gained && i < both + gained + lost;
    baseline.push_back(is_both || is_lost ? 1 : 0);
    arm.push_back(is_both || is_gained ? 1 : 0);
  }
  std::iota(item.begin(), item.end(), 0);
  return paired_accuracy(baseline, arm, item, confidence);
}

TEST(Equivalence, OfAccuracyHasTheScoreTestsPValues) {
  // 1 - Φ(0.5308407856479729) and 1 - Φ(3.1594943973509264), statistics by scipy.
  const Equivalence left = equivalence(task(60, 3, 11, 26), 0.1), right = equivalence(task(60, 3, 11, 26), 0.05);
  EXPECT_NEAR(left.p_not_below, 0.5 * std::erfc(0.5308407856479729 / std::sqrt(2.0)), 1e-7);
  EXPECT_NEAR(right.p_not_above, 0.5 * std::erfc(3.1594943973509264 / std::sqrt(2.0)), 1e-7);
  EXPECT_EQ(left.p_value, left.p_not_below);
  EXPECT_FALSE(left.equivalent);
}

TEST(Equivalence, OfAccuracyIsThatTheNarrowerIntervalLiesInside) {
  const PairedAccuracy accuracy = task(1000, 25, 48, 246);
  const Equivalence some = equivalence(accuracy, 0.02);
  EXPECT_NEAR(some.interval.low, -0.02848524414739865, 2e-7);  // 90 %
  EXPECT_NEAR(some.interval.high, -0.006910663340720536, 2e-7);
  EXPECT_FALSE(equivalence(accuracy, 0.02848).equivalent);
  EXPECT_TRUE(equivalence(accuracy, 0.02849).equivalent);
}

TEST(Equivalence, WithoutDiscordantPairsDependsOnTheirNumber) {
  EXPECT_FALSE(equivalence(task(100, 0, 0, 100), 0.01).equivalent);
  EXPECT_TRUE(equivalence(task(200, 0, 0, 100), 0.01).equivalent);  // z² / (n + z²) < 0.01 from n = 268 on
}

TEST(Equivalence, OfMeansMatchesTwoTTests) {
  const std::vector<double> differences{0.3, -0.1, 0.2, 0.05, -0.15, 0.1, 0.0, 0.25};
  std::vector<std::int64_t> document(8);
  std::iota(document.begin(), document.end(), 0);
  IntervalOptions options;
  options.min_documents = 1;
  const Equivalence result = equivalence(differences, document, 0.2, options);
  EXPECT_NEAR(result.p_not_below, 0.0008791407800046577, 1e-12);
  EXPECT_NEAR(result.p_not_above, 0.038733877189763725, 1e-12);
  EXPECT_TRUE(result.equivalent);
  EXPECT_NEAR(result.interval.low, -0.027552122199923118, 1e-12);
  EXPECT_NEAR(result.interval.high, 0.19005212219992307, 1e-12);
  EXPECT_FALSE(equivalence(differences, document, 0.19, options).equivalent);
}

TEST(Equivalence, OfEqualDifferencesIsCertain) {
  const std::vector<std::int64_t> document{0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
  IntervalOptions options;
  options.min_documents = 1;
  const Equivalence zero = equivalence(std::vector<double>(10, 0.0), document, 1e-9, options);
  EXPECT_TRUE(zero.equivalent);
  EXPECT_EQ(zero.p_value, 0.0);
  EXPECT_FALSE(equivalence(std::vector<double>(10, 1.0), document, 0.5, options).equivalent);
}

TEST(Equivalence, RefusesBadInput) {
  EXPECT_EQ(message_of([] { equivalence(task(5, 1, 1, 1), 0.0); }),
            "equivalence margin is 0, expected a number above 0 and below 1");
  EXPECT_EQ(message_of([] { equivalence(task(5, 1, 1, 1), 0.1, 0.5); }),
            "confidence of an equivalence test is 0.5, expected a number between 0.5 and 1");
  EXPECT_THAT(
      message_of([] { equivalence(std::vector<double>{1.0}, std::vector<std::int64_t>{0}, 0.1, IntervalOptions{}); }),
      HasSubstr("expected at least 3 that differ"));
}

TEST(Holm, AdjustsStepByStep) {
  EXPECT_THAT(
      holm(std::vector<double>{0.01, 0.04, 0.03, 0.005}),
      ElementsAre(DoubleNear(0.03, 1e-15), DoubleNear(0.06, 1e-15), DoubleNear(0.06, 1e-15), DoubleNear(0.02, 1e-15)));
  EXPECT_THAT(holm(std::vector<double>{0.7, 0.6}), ElementsAre(1.0, 1.0));
  EXPECT_TRUE(holm({}).empty());
  EXPECT_EQ(message_of([] { holm(std::vector<double>{1.1}); }), "p-value is 1.1, expected 0 to 1");
}

TEST(PooledDelta, WeighsTasksOrQuestions) {
  const std::vector<PairedAccuracy> tasks{task(60, 3, 11, 26), task(200, 8, 0, 192)};
  EXPECT_NEAR(pooled_delta(tasks, Weighting::tasks).value, (-0.08 + 0.02) / 2, 1e-15);
  const Estimate by_question = pooled_delta(tasks, Weighting::questions);
  EXPECT_NEAR(by_question.value, 0.0, 1e-15);
  EXPECT_EQ(by_question.n, 500);
  EXPECT_NEAR(*by_question.p_value, mcnemar_exact(11, 11), 1e-15);
  EXPECT_FALSE(pooled_delta(tasks, Weighting::tasks).p_value);
}

// MOVER by hand, from the limits of the parts.
TEST(PooledDelta, CombinesTheLimitsOfItsTasks) {
  const std::vector<PairedAccuracy> tasks{task(60, 3, 11, 26), task(180, 0, 0, 20)};
  const Estimate pooled = pooled_delta(tasks, Weighting::tasks);
  const double zero = 0.018845326377266575;
  EXPECT_NEAR(pooled.interval->low, -0.04 - 0.5 * std::hypot(-0.08 + 0.16187459569241971, zero), 1e-6);
  EXPECT_NEAR(pooled.interval->high, -0.04 + 0.5 * std::hypot(0.08 - 0.007597551762435583, zero), 1e-6);
}

TEST(PooledDelta, OfOneTaskIsThatTask) {
  const std::vector<PairedAccuracy> one{task(60, 3, 11, 26)};
  for (const Weighting weighting : {Weighting::tasks, Weighting::questions}) {
    const Estimate pooled = pooled_delta(one, weighting);
    EXPECT_DOUBLE_EQ(pooled.value, one[0].delta.value);
    EXPECT_DOUBLE_EQ(pooled.interval->low, one[0].delta.interval->low);
    EXPECT_DOUBLE_EQ(pooled.interval->high, one[0].delta.interval->high);
  }
}

TEST(PooledDelta, RefusesNothingAndUnequalConfidence) {
  EXPECT_EQ(message_of([] { pooled_delta({}, Weighting::tasks); }), "no tasks to pool, expected at least 1");
  const std::vector<PairedAccuracy> tasks{task(5, 1, 1, 1), task(5, 1, 1, 1, 0.9)};
  EXPECT_THAT(message_of([&] { pooled_delta(tasks, Weighting::tasks); }), HasSubstr("confidence 0.9, expected 0.95"));
}

TEST(Power, NumbersOfPairsMatchTheFormulaByScipy) {
  EXPECT_EQ(pairs_to_detect(0.02, 0.06), 1175);  // 1174.971
  EXPECT_EQ(pairs_to_detect(0.05, 0.2), 626);    // 625.547
  // The variance at the margin by a golden-section search of the restricted likelihood.
  EXPECT_EQ(pairs_to_show_equivalence(0.02, 0.06), 1349);  // 1348.015
  EXPECT_EQ(pairs_to_show_equivalence(0.05, 0.2), 699);    // 698.620
}

// As many pairs as are said to be needed do show it, also where none differs: the test wants z² (1 - margin) / margin.
TEST(Power, PairsForEquivalenceSufficeWhereNoneDiffers) {
  for (const double margin : {0.01, 0.05, 0.2}) {
    const auto needed = static_cast<int>(pairs_to_show_equivalence(margin, planning_discordance(task(50, 0, 0, 50))));
    EXPECT_TRUE(equivalence(task(needed, 0, 0, 0), margin).equivalent) << needed;
    const auto least = static_cast<int>(pairs_to_show_equivalence(margin, 1e-9));
    EXPECT_TRUE(equivalence(task(least, 0, 0, 0), margin).equivalent) << least;
    EXPECT_FALSE(equivalence(task(least - 1, 0, 0, 0), margin).equivalent) << least;
  }
}

TEST(Power, MinimumDetectableDeltaIsTheInverse) {
  EXPECT_NEAR(*minimum_detectable_delta(1174.9713280971098, 0.06), 0.02, 1e-9);
  EXPECT_FALSE(minimum_detectable_delta(20, 0.06));
  EXPECT_LT(*minimum_detectable_delta(10000, 0.06), *minimum_detectable_delta(1000, 0.06));
}

TEST(Power, OfMeansScalesWithTheStandardError) {
  EXPECT_NEAR(minimum_detectable_mean(0.01), 0.01 * (1.959963984540054 + 0.8416212335729143), 1e-12);
  EXPECT_EQ(units_to_detect(minimum_detectable_mean(0.01) * 0.9999, 0.01, 80), 81);
  EXPECT_EQ(units_to_show_equivalence(0.01, 0.01, 100), 857);  // 100 (1.644854 + 1.281552)² = 856.38
}

TEST(Power, PlansWithHalfAPairMoreThanSeen) {
  EXPECT_NEAR(planning_discordance(task(60, 3, 11, 26)), 14.5 / 100.5, 1e-15);
  EXPECT_GT(planning_discordance(task(60, 0, 0, 40)), 0.0);
}

TEST(Power, RefusesBadInput) {
  EXPECT_THAT(message_of([] { pairs_to_detect(0.2, 0.1); }), HasSubstr("at most the discordant share 0.1"));
  EXPECT_THAT(message_of([] { pairs_to_detect(0.0, 0.1); }), HasSubstr("delta is 0, expected"));
  EXPECT_THAT(message_of([] { minimum_detectable_delta(0, 0.1); }), HasSubstr("pairs is 0, expected"));
  EXPECT_THAT(message_of([] { pairs_to_detect(0.1, 0.2, {.confidence = 1.0, .power = 0.8}); }),
              HasSubstr("confidence is 1, expected"));
  EXPECT_THAT(message_of([] { units_to_detect(0.1, 0.1, 1); }), HasSubstr("units is 1, expected 2 or more"));
}

}  // namespace
}  // namespace replayeval::metrics
