#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "eval/metrics/statistics.h"

namespace replayeval::metrics {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

TEST(Quantiles, AreNumPysLinearOnes) {  // numpy.quantile([3, 1, 4, 1, 5], [0, .1, .5, .9, 1])
  const std::vector<double> probabilities = {0.0, 0.1, 0.5, 0.9, 1.0};
  EXPECT_THAT(quantiles({3, 1, 4, 1, 5}, probabilities),
              testing::ElementsAre(1.0, 1.0, 3.0, testing::DoubleEq(4.6), 5.0));
}

TEST(Quantiles, InAnyOrderOfProbabilitiesAgreeWithSorting) {
  std::mt19937_64 random(1);
  std::vector<float> values(1013);
  for (float& value : values) value = static_cast<float>(std::exponential_distribution<double>()(random));
  std::vector<float> sorted = values;
  std::sort(sorted.begin(), sorted.end());
  const std::vector<double> probabilities = {0.999, 0.5, 0.9, 0.5, 0.0, 1.0, 0.01};
  const std::vector<double> found = quantiles(values, probabilities);
  for (std::size_t i = 0; i < probabilities.size(); ++i) {
    const double place = probabilities[i] * 1012.0;
    const double low = sorted[static_cast<std::size_t>(std::floor(place))];
    const double high = sorted[static_cast<std::size_t>(std::ceil(place))];
    EXPECT_DOUBLE_EQ(found[i], low + (place - std::floor(place)) * (high - low)) << probabilities[i];
  }
}

TEST(Quantiles, OfOneValueAreThatValue) { EXPECT_EQ(quantile({2.5F}, 0.3), 2.5); }

TEST(Quantiles, RefuseBadInput) {
  EXPECT_THAT([] { quantile({}, 0.5); }, ThrowsMessage<std::invalid_argument>(HasSubstr("no values")));
  EXPECT_THAT([] { quantile({1.0F}, 1.5); }, ThrowsMessage<std::invalid_argument>(HasSubstr("expected 0 to 1")));
  EXPECT_THAT(([] {
                quantile({1.0F, NAN}, 0.5);
              }),
              ThrowsMessage<std::invalid_argument>(HasSubstr("value 1 is not finite")));
}

TEST(RunningMoments, MatchTheDefinitionFarFromZero) {
  RunningMoments moments;
  for (const double value : {1e9 + 4.0, 1e9 + 7.0, 1e9 + 13.0, 1e9 + 16.0}) moments.add(value);
  EXPECT_DOUBLE_EQ(moments.mean(), 1e9 + 10.0);
  EXPECT_DOUBLE_EQ(moments.variance(), 30.0);
  EXPECT_EQ(moments.count(), 4);
}

TEST(RunningMoments, MergedPartsEqualTheWhole) {
  RunningMoments left, right, whole, empty;
  for (int i = 0; i < 10; ++i) {
    const double value = i * i;
    (i < 3 ? left : right).add(value);
    whole.add(value);
  }
  left.merge(right);
  left.merge(empty);
  empty.merge(left);
  for (const RunningMoments& moments : {left, empty}) {
    EXPECT_EQ(moments.count(), 10);
    EXPECT_DOUBLE_EQ(moments.mean(), whole.mean());
    EXPECT_DOUBLE_EQ(moments.variance(), whole.variance());
  }
}

TEST(RunningMoments, OfOneValueHaveNoVariance) {
  RunningMoments moments;
  moments.add(3.0);
  EXPECT_EQ(moments.variance(), 0.0);
}

TEST(Share, CountsSetFlags) {
  EXPECT_EQ(share(std::vector<std::uint8_t>{1, 0, 0, 1}), 0.5);
  EXPECT_THAT([] { share({}); }, ThrowsMessage<std::invalid_argument>(HasSubstr("no flags")));
}

}  // namespace
}  // namespace replayeval::metrics
