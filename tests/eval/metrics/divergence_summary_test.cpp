#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "eval/metrics/divergence.h"

namespace replayeval::metrics {
namespace {

TokenDivergence tokens(std::size_t count) {
  TokenDivergence result;
  for (std::size_t i = 0; i < count; ++i) {
    result.log_prob.push_back(-1.0);
    result.kl.push_back(static_cast<float>(i));
    result.delta_p.push_back(i % 2 == 0 ? 0.25F : -0.5F);
    result.rank.push_back(1);
    result.same_top1.push_back(i % 4 == 0 ? 0 : 1);
    result.tie.push_back(i % 8 == 0 ? 1 : 0);
  }
  return result;
}

std::vector<std::int64_t> documents(std::size_t count) {
  std::vector<std::int64_t> result;
  for (std::size_t i = 0; i < count; ++i) result.push_back(static_cast<std::int64_t>(i / 40));
  return result;
}

TEST(DivergenceSummary, NamesEveryNumber) {
  const TokenDivergence arm = tokens(1001);
  TokenDivergence baseline = tokens(1001);
  for (std::size_t i = 0; i < 1001; ++i) baseline.tie[i] = i == 4 ? 1 : 0;
  auto found = summary(arm, baseline, documents(1001), {});
  EXPECT_DOUBLE_EQ(found["kl_mean"].value, 500.0);
  EXPECT_DOUBLE_EQ(found["kl_median"].value, 500.0);
  EXPECT_DOUBLE_EQ(found["kl_p90"].value, 900.0);
  EXPECT_DOUBLE_EQ(found["kl_p99"].value, 990.0);
  EXPECT_DOUBLE_EQ(found["kl_p99.9"].value, 999.0);
  EXPECT_DOUBLE_EQ(found["kl_max"].value, 1000.0);
  EXPECT_DOUBLE_EQ(found["dp_mean"].value, (501 * 0.25 - 500 * 0.5) / 1001.0);
  EXPECT_DOUBLE_EQ(found["dp_rms"].value, std::sqrt((501 * 0.0625 + 500 * 0.25) / 1001.0));
  EXPECT_EQ(found["dp_p1"].value, -0.5);
  EXPECT_EQ(found["dp_p99"].value, 0.25);
  EXPECT_DOUBLE_EQ(found["same_top1"].value, 750.0 / 1001.0);
  EXPECT_DOUBLE_EQ(found["tie_share"].value, 126.0 / 1001.0);
  // Changed at 251 tokens, 126 of them tied on the arm's side, one more on the baseline's.
  EXPECT_DOUBLE_EQ(found["top1_changed_untied"].value, 124.0 / 1001.0);
  for (const char* name : {"kl_mean", "dp_mean", "same_top1"}) {
    ASSERT_TRUE(found[name].interval) << name;
    EXPECT_LE(found[name].interval->low, found[name].value);
    EXPECT_GE(found[name].interval->high, found[name].value);
    EXPECT_EQ(found[name].n, 1001);
  }
  for (const char* name : {"kl_max", "kl_p99", "tie_share", "dp_rms"}) EXPECT_FALSE(found[name].interval) << name;
}

TEST(DivergenceSummary, IntervalsStayWhereTheTruthCanBe) {
  TokenDivergence arm = tokens(1000);
  std::fill(arm.kl.begin(), arm.kl.end(), 0.0F);
  arm.kl[0] = 1.0F;  // one document has it all: a symmetric interval would reach below 0
  std::fill(arm.same_top1.begin(), arm.same_top1.end(), 1);
  arm.same_top1[5] = 0;
  auto found = summary(arm, arm, documents(1000), {});
  EXPECT_GE(found["kl_mean"].interval->low, 0.0);
  EXPECT_LE(found["kl_mean"].interval->low, found["kl_mean"].value);
  EXPECT_GT(found["kl_mean"].interval->high, 1e-3);
  EXPECT_LT(found["same_top1"].interval->high, 1.0) << "a flag is missing";
  EXPECT_GT(found["same_top1"].interval->high, found["same_top1"].value);
}

TEST(DivergenceSummary, RefusesUnequalLengths) {
  EXPECT_THROW(summary(tokens(10), tokens(9), documents(10), {}), std::invalid_argument);
  EXPECT_THROW(summary(tokens(10), tokens(10), documents(9), {}), std::invalid_argument);
  EXPECT_THROW(summary(tokens(0), tokens(0), documents(0), {}), std::invalid_argument);
}

}  // namespace
}  // namespace replayeval::metrics
