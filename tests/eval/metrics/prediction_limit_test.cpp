#include "eval/metrics/prediction_limit.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <stdexcept>

namespace replayeval::metrics {
namespace {

// n = 3, mean 0, standard deviation 1: t of 2 degrees of freedom at 0.95 is 2.91999.
TEST(LargestToExpect, IsThePredictionLimit) {
  const std::vector<double> values = {std::exp(-1.0), 1.0, std::exp(1.0)};
  EXPECT_NEAR(largest_to_expect(values, 1, 0.95), std::exp(2.919986 * std::sqrt(4.0 / 3.0)), 1e-4);
  EXPECT_NEAR(largest_to_expect(values, 2, 0.9), largest_to_expect(values, 1, 0.95), 1e-9);
  EXPECT_NEAR(largest_to_expect({0.0, values[0], values[1], 0.0, values[2]}, 1, 0.95),
              largest_to_expect(values, 1, 0.95), 1e-9);
}

TEST(LargestToExpect, OfAlmostNothing) {
  EXPECT_EQ(largest_to_expect({0.0, 0.0}, 5, 0.999), 0.0);
  EXPECT_EQ(largest_to_expect({0.0, 0.25}, 5, 0.999), 0.25);
  EXPECT_THROW(largest_to_expect({}, 5, 0.999), std::invalid_argument);
  EXPECT_THROW(largest_to_expect({1.0}, 0, 0.999), std::invalid_argument);
  EXPECT_THROW(largest_to_expect({-1.0}, 1, 0.999), std::invalid_argument);
}

TEST(LargestToExpect, HoldsAsOftenAsItSays) {
  std::mt19937_64 random(1);
  std::lognormal_distribution<double> draw(-9.0, 0.7);
  const auto draws = [&](int count) {
    std::vector<double> values;
    for (int i = 0; i < count; ++i) values.push_back(draw(random));
    return values;
  };
  constexpr int experiments = 4000;
  int passed = 0;
  for (int i = 0; i < experiments; ++i) {
    const double limit = largest_to_expect(draws(25), 10, 0.9);
    const std::vector<double> more = draws(10);
    if (*std::max_element(more.begin(), more.end()) <= limit) ++passed;
  }
  // Bonferroni's inequality errs towards a larger limit, by little.
  EXPECT_GT(passed, experiments * 0.89);
  EXPECT_LT(passed, experiments * 0.94);
}

}  // namespace
}  // namespace replayeval::metrics
