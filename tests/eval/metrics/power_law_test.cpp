#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "eval/metrics/statistics.h"

namespace replayeval::metrics {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;
using Values = std::vector<double>;

TEST(PowerLaw, FindsAnExactOne) {
  const Values flushes = {1, 2, 8, 64, 128};
  Values error;
  for (const double f : flushes) error.push_back(3e-4 * std::pow(f, 0.5));
  const auto law = fit_power_law(flushes, error);
  ASSERT_TRUE(law);
  EXPECT_NEAR(law->c, 3e-4, 1e-16);
  EXPECT_NEAR(law->exponent, 0.5, 1e-13);
  EXPECT_NEAR(law->r_squared, 1.0, 1e-13);
  EXPECT_NEAR(law->exponent_interval->low, 0.5, 1e-6);
  EXPECT_NEAR(law->exponent_interval->high, 0.5, 1e-6);
  EXPECT_EQ(law->points, 5);
}

// By hand: y = log error = 0, 1, 1 at x = 0, 1, 2: slope 1/2, residuals -1/6, 1/3, -1/6, s^2 = 1/6, se = sqrt(1/12).
TEST(PowerLaw, IntervalMatchesAHandComputation) {
  const auto law = fit_power_law(Values{1.0, M_E, M_E * M_E}, Values{1.0, M_E, M_E});
  ASSERT_TRUE(law);
  EXPECT_NEAR(law->exponent, 0.5, 1e-12);
  EXPECT_NEAR(law->exponent_interval->high - law->exponent, 12.70620473617471 * std::sqrt(1.0 / 12.0), 1e-9);
  EXPECT_NEAR(law->c, std::exp(1.0 / 6.0), 1e-12);
}

TEST(PowerLaw, IntervalHoldsTheExponentAsOftenAsItSays) {
  std::mt19937_64 random(5);
  std::normal_distribution<double> noise(0.0, 0.3);
  const Values flushes = {1, 2, 4, 8, 16, 32, 64, 128};
  int held = 0;
  for (int i = 0; i < 2000; ++i) {
    Values error;
    for (const double f : flushes) error.push_back(1e-3 * std::pow(f, 0.7) * std::exp(noise(random)));
    const Interval interval = *fit_power_law(flushes, error, 0.9)->exponent_interval;
    held += interval.low <= 0.7 && 0.7 <= interval.high ? 1 : 0;
  }
  EXPECT_NEAR(held / 2000.0, 0.9, 0.025);  // 3.7 standard errors
}

TEST(PowerLaw, LeavesOutPointsWithoutALogarithm) {
  const auto law = fit_power_law(Values{0, 1, 2, 4, 8}, Values{1.0, 1.0, 2.0, 0.0, 8.0});
  ASSERT_TRUE(law);
  EXPECT_EQ(law->points, 3);
  EXPECT_NEAR(law->exponent, 1.0, 1e-13);
}

TEST(PowerLaw, NeedsTwoDistinctFlushCounts) {
  EXPECT_FALSE(fit_power_law(Values{4, 4}, Values{1.0, 2.0}));
  EXPECT_FALSE(fit_power_law(Values{1, 2, 3}, Values{0.0, 0.0, 0.0}));
  const auto two = fit_power_law(Values{1, 2}, Values{1.0, 2.0});
  ASSERT_TRUE(two);
  EXPECT_FALSE(two->exponent_interval);
}

TEST(PowerLaw, RefusesBadInput) {
  EXPECT_THAT(([] {
                fit_power_law(Values{1, 2}, Values{1.0});
              }),
              ThrowsMessage<std::invalid_argument>(HasSubstr("2 flush counts and 1 errors")));
  EXPECT_THAT(([] {
                fit_power_law(Values{1, 2}, Values{1.0, NAN});
              }),
              ThrowsMessage<std::invalid_argument>(HasSubstr("point 1 is not finite")));
}

}  // namespace
}  // namespace replayeval::metrics
