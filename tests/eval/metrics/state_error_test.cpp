#include "eval/metrics/state_error.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace replayeval::metrics {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;
using Floats = std::vector<float>;
using Doubles = std::vector<double>;

TEST(StateError, MatchesTheDefinitionPerHeadAndOverAll) {
  // Head 0: truth (3, 4), arm (3, 5). Head 1: truth (1, 0), arm (0, 1).
  const StateErrorNorms norms = state_error(Floats{3, 5, 0, 1}, Floats{3, 4, 1, 0}, 2);
  ASSERT_EQ(norms.heads.size(), 2U);
  EXPECT_DOUBLE_EQ(norms.heads[0].relative_frobenius, 0.2);
  EXPECT_DOUBLE_EQ(norms.heads[0].max_abs, 1.0);
  EXPECT_DOUBLE_EQ(norms.heads[0].cosine, 29.0 / (5.0 * std::sqrt(34.0)));
  EXPECT_DOUBLE_EQ(norms.heads[1].relative_frobenius, std::sqrt(2.0));
  EXPECT_EQ(norms.heads[1].cosine, 0.0);
  EXPECT_DOUBLE_EQ(norms.all.relative_frobenius, std::sqrt(3.0 / 26.0));
  EXPECT_DOUBLE_EQ(norms.all.cosine, 29.0 / std::sqrt(35.0 * 26.0));
  EXPECT_EQ(norms.all.max_abs, 1.0);
}

TEST(StateError, OfEqualStatesIsExactlyNothing) {
  const Floats state = {0.1F, -0.7F, 1e-20F, 1e20F, 0.3F, 0.9F};
  const StateErrorNorms norms = state_error(state, state, 3);
  for (const ErrorNorms& head : norms.heads) {
    EXPECT_EQ(head.relative_frobenius, 0.0);
    EXPECT_EQ(head.max_abs, 0.0);
    EXPECT_EQ(head.cosine, 1.0);
  }
  EXPECT_EQ(norms.all.cosine, 1.0);
}

TEST(StateError, SeesDifferencesBelowFloat32) {
  const Doubles truth = {1.0 + 1e-10, 2.0};
  const StateErrorNorms norms = state_error(Floats{1.0F, 2.0F}, truth, 1);
  EXPECT_NEAR(norms.all.max_abs, 1e-10, 1e-16);
  EXPECT_NEAR(norms.all.relative_frobenius, 1e-10 / std::sqrt(5.0), 1e-16);
}

TEST(StateError, AddsSquaresOfLargeFloatsWithoutOverflow) {
  const float large = 3e38F;
  const StateErrorNorms norms = state_error(Floats{large, large}, Floats{large, -large}, 1);
  EXPECT_DOUBLE_EQ(norms.all.relative_frobenius, std::sqrt(2.0));
}

TEST(StateError, SaysWhenTheTruthIsZero) {
  // Head 0: both zero. Head 1: only the truth. Head 2: only the arm.
  const StateErrorNorms norms = state_error(Floats{0, 0, 2, 0, 0, 0}, Floats{0, 0, 0, 0, 1, 1}, 3);
  EXPECT_TRUE(norms.heads[0].zero_truth);
  EXPECT_EQ(norms.heads[0].relative_frobenius, 0.0);
  EXPECT_EQ(norms.heads[0].cosine, 1.0);
  EXPECT_TRUE(norms.heads[1].zero_truth);
  EXPECT_EQ(norms.heads[1].relative_frobenius, 1.0);
  EXPECT_EQ(norms.heads[1].cosine, 0.0);
  EXPECT_EQ(norms.heads[1].max_abs, 2.0);
  EXPECT_FALSE(norms.heads[2].zero_truth);
  EXPECT_EQ(norms.heads[2].relative_frobenius, 1.0);
  EXPECT_EQ(norms.heads[2].cosine, 0.0);
  EXPECT_FALSE(norms.all.zero_truth);
}

TEST(StateErrorAccumulator, PoolsSequences) {
  StateErrorAccumulator accumulator(1, 2);
  accumulator.add(Floats{1, 0}, Floats{0, 0});
  accumulator.add(Doubles{3, 4}, Doubles{3, 4});
  EXPECT_EQ(accumulator.count(), 2);
  EXPECT_DOUBLE_EQ(accumulator.norms().all.relative_frobenius, 1.0 / 5.0);
  EXPECT_FALSE(accumulator.norms().heads[0].zero_truth);
}

TEST(StateErrorAccumulator, RefusesBadInputAndKeepsItsSums) {
  StateErrorAccumulator accumulator(2, 3);
  EXPECT_THROW(accumulator.norms(), std::logic_error);
  accumulator.add(Floats{1, 1, 1, 1, 1, 1}, Floats{1, 1, 1, 1, 1, 2});
  EXPECT_THAT(([&] {
                accumulator.add(Floats{1, 1}, Floats{1, 1});
              }),
              ThrowsMessage<std::invalid_argument>(HasSubstr("expected 2 heads x 3 = 6")));
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_THAT(([&] {
                accumulator.add(Floats{9, 9, 9, 9, nan, 9}, Floats(6, 1.0F));
              }),
              ThrowsMessage<std::runtime_error>(HasSubstr("arm is not finite at head 1, element 1")));
  EXPECT_EQ(accumulator.count(), 1);
  EXPECT_DOUBLE_EQ(accumulator.norms().all.relative_frobenius, std::sqrt(1.0 / 9.0));
  EXPECT_THROW(StateErrorAccumulator(0, 3), std::invalid_argument);
  EXPECT_THROW(state_error(Floats{1, 2, 3}, Floats{1, 2, 3}, 2), std::invalid_argument);
}

}  // namespace
}  // namespace replayeval::metrics
