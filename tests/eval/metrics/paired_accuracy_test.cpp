// Numbers "by scipy" were computed with scipy 1.17.1: binomtest for McNemar, Clopper-Pearson and chance;
// permutation_test for sign flips; Tango's statistic with its nuisance share found by numerical maximisation of the
// likelihood (minimize_scalar) and its interval by brentq, so not by the closed form that is tested.
#include "eval/metrics/paired_accuracy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>

#include "eval/metrics/sign_flip_test.h"
#include "tests/temporary_folder.h"

namespace replayeval::metrics {
namespace {

using testing::HasSubstr;
using Flags = std::vector<std::uint8_t>;
using Items = std::vector<std::int64_t>;

struct Answers {
  Flags baseline, arm;
  Items item;

  PairedAccuracy compare(double confidence = 0.95) const { return paired_accuracy(baseline, arm, item, confidence); }
};

// Every answer its own item.
Answers answers(std::size_t both, std::size_t gained, std::size_t lost, std::size_t neither) {
  Answers result;
  const auto add = [&](std::size_t count, std::uint8_t baseline, std::uint8_t arm) {
    result.baseline.insert(result.baseline.end(), count, baseline);
    result.arm.insert(result.arm.end(), count, arm);
  };
  add(both, 1, 1);
  add(gained, 0, 1);
  add(lost, 1, 0);
  add(neither, 0, 0);
  result.item.resize(result.arm.size());
  std::iota(result.item.begin(), result.item.end(), 0);
  return result;
}

TEST(McNemarExact, MatchesTheBinomialDistribution) {
  EXPECT_NEAR(mcnemar_exact(3, 11), 0.057373046875, 1e-14);
  EXPECT_NEAR(mcnemar_exact(0, 6), 0.03125, 1e-15);
  EXPECT_NEAR(mcnemar_exact(25, 48), 0.009542211425865477, 1e-13);
  EXPECT_EQ(mcnemar_exact(11, 3), mcnemar_exact(3, 11));
  EXPECT_EQ(mcnemar_exact(7, 7), 1.0);
  EXPECT_EQ(mcnemar_exact(0, 1), 1.0);
  EXPECT_EQ(mcnemar_exact(0, 0), 1.0) << "no discordant pairs is an answer";
  EXPECT_THAT(message_of([] { mcnemar_exact(-1, 2); }), HasSubstr("-1 gained and 2 lost pairs"));
}

TEST(SignFlipTest, MatchesThePermutationsCountedOneByOne) {
  EXPECT_NEAR(sign_flip_test(Items{3, 1, -1, 2, 0, 2, -4, 1, 1}), 0.5390625, 1e-14);
  EXPECT_NEAR(sign_flip_test(Items{5, 4, 3, 3, 1, -1, 2, 2, 2, -3, 1, 1, 0, 0, 6}), 0.0166015625, 1e-14);
  EXPECT_NEAR(sign_flip_test(Items{2, -2}), 1.0, 1e-15);
  EXPECT_EQ(sign_flip_test(Items{0, 0, 0}), 1.0);
  EXPECT_EQ(sign_flip_test(Items{}), 1.0);
}

TEST(SignFlipTest, OfSingleQuestionsIsMcNemars) {
  Items differences(40, 0);
  differences.insert(differences.end(), 25, 1);
  differences.insert(differences.end(), 48, -1);
  EXPECT_NEAR(sign_flip_test(differences), mcnemar_exact(25, 48), 1e-13);
}

TEST(ScoreInterval, MatchesANumericallyMaximisedLikelihood) {
  const auto expect = [](DiscordantPairs pairs, double confidence, double low, double high) {
    const Interval interval = score_interval(pairs, confidence);
    EXPECT_NEAR(interval.low, low, 2e-7);
    EXPECT_NEAR(interval.high, high, 2e-7);
    const Interval mirrored = score_interval({pairs.lost, pairs.gained, pairs.n}, confidence);
    EXPECT_NEAR(mirrored.low, -high, 2e-7);
    EXPECT_NEAR(mirrored.high, -low, 2e-7);
  };
  expect({3, 11, 100}, 0.95, -0.16187459569241971, -0.007597551762435583);
  expect({16, 80, 656}, 0.95, -0.12729834468232493, -0.0701355384904041);
  expect({0, 6, 50}, 0.95, -0.23804817383203167, -0.040090690664054233);
  expect({25, 48, 1319}, 0.90, -0.02848524414739865, -0.006910663340720536);
  expect({1, 2, 20}, 0.95, -0.26563059936454503, 0.16139354057027716);
  EXPECT_NEAR(score_statistic({3, 11, 100}, -0.1), 0.5308407856479729, 1e-7);
  EXPECT_NEAR(score_statistic({3, 11, 100}, 0.05), -3.1594943973509264, 1e-7);
}

TEST(ScoreInterval, WithoutDiscordantPairsIsOfTheSizeThatTheirNumberAllows) {
  const Interval interval = score_interval({0, 0, 200}, 0.95);
  EXPECT_NEAR(interval.high, 0.018845326377266575, 1e-12);  // z² / (n + z²)
  EXPECT_NEAR(interval.low, -0.018845326377266575, 1e-12);
}

// With every pair gained the statistic is sqrt(n (1 - delta) / (1 + delta)).
TEST(ScoreInterval, ReachesTheEndsOfItsRange) {
  const double z_squared = 1.959963984540054 * 1.959963984540054;
  EXPECT_NEAR(score_interval({10, 0, 10}, 0.95).high, 1.0, 1e-9);
  EXPECT_NEAR(score_interval({10, 0, 10}, 0.95).low, (10 - z_squared) / (10 + z_squared), 1e-9);
}

TEST(PairedAccuracy, CountsAndDelta) {
  const PairedAccuracy result = answers(60, 3, 11, 26).compare();
  EXPECT_EQ(result.n, 100);
  EXPECT_EQ(result.items, 100);
  EXPECT_EQ(result.both_right, 60);
  EXPECT_EQ(result.gained, 3);
  EXPECT_EQ(result.lost, 11);
  EXPECT_EQ(result.both_wrong, 26);
  EXPECT_DOUBLE_EQ(result.baseline, 0.71);
  EXPECT_DOUBLE_EQ(result.arm, 0.63);
  EXPECT_DOUBLE_EQ(result.delta.value, -0.08);
  EXPECT_NEAR(result.delta.interval->low, -0.16187459569241971, 2e-7);
  EXPECT_NEAR(*result.delta.p_value, 0.057373046875, 1e-14);
  EXPECT_EQ(result.effective_n, 100.0);
  EXPECT_EQ(result.delta.method, "paired score interval (Tango), McNemar exact over 100 items");
}

TEST(PairedAccuracy, OfIdenticalArmsIsAnAnswer) {
  const PairedAccuracy result = answers(150, 0, 0, 50).compare();
  EXPECT_EQ(result.delta.value, 0.0);
  EXPECT_FALSE(std::signbit(result.delta.value));
  EXPECT_EQ(result.delta.p_value, 1.0);
  EXPECT_NEAR(result.delta.interval->high, 0.018845326377266575, 1e-12);
}

TEST(PairedAccuracy, OfASingleQuestionSaysNothing) {
  const PairedAccuracy result = answers(0, 0, 1, 0).compare();
  EXPECT_EQ(result.delta.value, -1.0);
  EXPECT_EQ(result.delta.p_value, 1.0);
  EXPECT_GT(result.delta.interval->high, -0.3);
}

// Answers that are copies of each other within items carry the evidence of one answer an item, and no more.
TEST(PairedAccuracy, OfRepeatsThatAllAgreeIsWorthItsItems) {
  const Answers single = answers(30, 2, 9, 19);
  Answers repeated;
  for (std::size_t i = 0; i < single.item.size(); ++i) {
    for (int repeat = 0; repeat < 5; ++repeat) {
      repeated.baseline.push_back(single.baseline[i]);
      repeated.arm.push_back(single.arm[i]);
      repeated.item.push_back(single.item[i]);
    }
  }
  const PairedAccuracy one = single.compare(), five = repeated.compare();
  EXPECT_EQ(five.n, 300);
  EXPECT_EQ(five.items, 60);
  EXPECT_DOUBLE_EQ(five.delta.value, one.delta.value);
  EXPECT_NEAR(*five.delta.p_value, *one.delta.p_value, 1e-12);
  EXPECT_LE(five.effective_n, 60.0);
  EXPECT_GT(five.effective_n, 55.0);
  const double width = one.delta.interval->high - one.delta.interval->low;
  EXPECT_NEAR(five.delta.interval->low, one.delta.interval->low, 0.05 * width);
  EXPECT_NEAR(five.delta.interval->high, one.delta.interval->high, 0.05 * width);
  EXPECT_THAT(five.delta.method, HasSubstr("clustered over 60 items"));
}

TEST(PairedAccuracy, OfIdenticalArmsWithRepeatsIsWorthItsItems) {
  Answers repeated;
  for (std::int64_t i = 0; i < 400; ++i) {
    repeated.baseline.push_back(i % 3 == 0 ? 0 : 1);
    repeated.arm.push_back(repeated.baseline.back());
    repeated.item.push_back(i / 4);
  }
  const PairedAccuracy result = repeated.compare();
  EXPECT_EQ(result.effective_n, 100.0);
  EXPECT_EQ(result.delta.p_value, 1.0);
}

TEST(PairedAccuracy, TakesItemsInAnyOrder) {
  const Answers apart{{1, 0, 1, 0}, {0, 0, 1, 1}, {7, 9, 7, 9}}, adjacent{{1, 1, 0, 0}, {0, 1, 0, 1}, {7, 7, 9, 9}};
  EXPECT_EQ(apart.compare().effective_n, adjacent.compare().effective_n);
  EXPECT_EQ(apart.compare().items, 2);
}

TEST(Accuracy, HasTheClopperPearsonInterval) {
  const Estimate most = accuracy(answers(45, 0, 0, 5).arm, answers(45, 0, 0, 5).item);
  EXPECT_DOUBLE_EQ(most.value, 0.9);
  EXPECT_NEAR(most.interval->low, 0.7818646335657977, 1e-9);
  EXPECT_NEAR(most.interval->high, 0.9667249064109785, 1e-9);
  const Estimate none = accuracy(Flags(20, 0), answers(20, 0, 0, 0).item);
  EXPECT_EQ(none.interval->low, 0.0);
  EXPECT_NEAR(none.interval->high, 0.16843347098308548, 1e-9);
  EXPECT_EQ(accuracy(Flags(20, 1), answers(20, 0, 0, 0).item).interval->high, 1.0);
}

TEST(ChancePValue, IsTheExactBinomialTest) {
  const Answers some = answers(12, 0, 0, 88), few = answers(6, 0, 0, 94);
  EXPECT_NEAR(chance_p_value(some.arm, some.item, 1.0 / 16), 0.022267285497807616, 1e-12);
  EXPECT_NEAR(chance_p_value(few.arm, few.item, 1.0 / 16), 0.5998103744000837, 1e-12);
  EXPECT_EQ(chance_p_value(Flags(9, 0), answers(9, 0, 0, 0).item, 0.1), 1.0);
  EXPECT_EQ(chance_p_value(some.arm, some.item, 1.0), 1.0);
  EXPECT_EQ(chance_p_value(some.arm, some.item, 0.0), 0.0);
}

// One lucky document of eight questions must not look like eight answers.
TEST(ChancePValue, CountsDocumentsNotQuestions) {
  Flags right(160, 0);
  Items document(160);
  for (std::size_t i = 0; i < right.size(); ++i) {
    document[i] = static_cast<std::int64_t>(i / 8);
    right[i] = i < 24 ? 1 : 0;
  }
  EXPECT_LT(chance_p_value(right, answers(160, 0, 0, 0).item, 0.0625), 0.001);
  EXPECT_GT(chance_p_value(right, document, 0.0625), 0.05);
}

TEST(PairedAccuracy, RefusesBadInput) {
  const Items two{0, 1};
  const auto compare = [](const Flags& baseline, const Flags& arm, const Items& item, double confidence = 0.95) {
    return message_of([&] { paired_accuracy(baseline, arm, item, confidence); });
  };
  EXPECT_EQ(compare({1, 1}, {1}, two), "the arm has 1 answers, expected the baseline's 2");
  EXPECT_EQ(compare({1, 1}, {1, 0}, {0}), "item has 1 entries, expected 2");
  EXPECT_EQ(compare({}, {}, {}), "no answers, expected at least 1");
  EXPECT_EQ(compare({1, 1}, {1, 2}, two), "answer 1 is 2, expected 0 or 1");
  EXPECT_EQ(compare({1, 1}, {1, 1}, two, 1.0), "confidence is 1, expected a number between 0 and 1");
  EXPECT_EQ(message_of([&] { chance_p_value(Flags{1, 0}, two, 1.5); }), "chance is 1.5, expected a number from 0 to 1");
  EXPECT_EQ(message_of([&] {
              accuracy(Flags{1, 0}, two, std::numeric_limits<double>::quiet_NaN());
            }),
            "confidence is nan, expected a number between 0 and 1");
}

}  // namespace
}  // namespace replayeval::metrics
