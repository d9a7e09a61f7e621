#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "eval/metrics/statistics.h"

namespace replayeval::metrics {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;
using Values = std::vector<double>;
using Documents = std::vector<std::int64_t>;

Values noise(std::size_t count, std::uint64_t seed, double mean = 0.0) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal(mean, 1.0);
  Values values(count);
  for (double& value : values) value = normal(random);
  return values;
}

Documents documents(std::size_t count, std::size_t length) {
  Documents result;
  for (std::size_t i = 0; i < count * length; ++i) result.push_back(static_cast<std::int64_t>(i / length));
  return result;
}

TEST(PairedDelta, IsTheDifferenceOfMeans) {
  const Values baseline = {-1.0, -2.0, -3.0, -4.0}, arm = {-1.5, -2.0, -2.0, -4.25};
  const MeanEstimate delta = paired_delta(baseline, arm, Documents{0, 0, 1, 1}, {});
  EXPECT_DOUBLE_EQ(delta.primary.value, 0.0625);
  EXPECT_DOUBLE_EQ(delta.t.value, 0.0625);
  EXPECT_EQ(delta.t.n, 4);
}

TEST(PairedDelta, OfEqualArmsIsExactlyZero) {
  const Values baseline = noise(5000, 1, -3.0);
  const MeanEstimate delta = paired_delta(baseline, baseline, documents(25, 200), {});
  for (const Estimate& estimate : {delta.primary, delta.t}) {
    EXPECT_EQ(estimate.value, 0.0);
    ASSERT_TRUE(estimate.interval);
    EXPECT_EQ(estimate.interval->low, 0.0);
    EXPECT_EQ(estimate.interval->high, 0.0);
  }
  EXPECT_EQ(delta.t.p_value, 1.0);
  const Estimate relative = relative_perplexity_delta(delta.primary);
  EXPECT_EQ(relative.value, 0.0);
  EXPECT_FALSE(std::signbit(relative.value));
  EXPECT_EQ(relative.interval->low, 0.0);
  EXPECT_EQ(relative.interval->high, 0.0);
}

TEST(PairedDelta, OfFloatArraysIsTakenInDouble) {
  const std::vector<float> baseline = {-1.0F, -2.0F}, arm = {std::nextafter(-1.0F, 0.0F), -2.0F};
  EXPECT_DOUBLE_EQ(paired_delta(baseline, arm, Documents{0, 1}, {}).t.value, std::ldexp(1.0, -25));
}

TEST(PairedDelta, OfASingleUnitHasNoInterval) {
  const Values baseline = noise(300, 2), arm = noise(300, 3);
  const MeanEstimate delta = paired_delta(baseline, arm, Documents(300, 7), {});
  EXPECT_EQ(delta.primary.units, 1);
  EXPECT_FALSE(delta.primary.interval);
  EXPECT_FALSE(delta.t.interval);
  EXPECT_FALSE(delta.t.p_value);
  EXPECT_FALSE(relative_perplexity_delta(delta.t).interval);
}

TEST(PairedDelta, OfTwoUnitsHasNoIntervalHoweverAlikeTheyAre) {
  for (const double second : {-1.5, -1.25}) {
    const MeanEstimate delta = paired_delta(Values{-1.0, -1.0}, Values{-1.5, second}, Documents{0, 1}, {});
    for (const Estimate& estimate : {delta.primary, delta.t}) {
      EXPECT_EQ(estimate.units, 2);
      EXPECT_FALSE(estimate.interval);
      EXPECT_FALSE(estimate.p_value);
    }
  }
}

TEST(PairedDelta, OfFewUnitsThatAreAlikeHasNoInterval) {
  IntervalOptions options;
  options.min_documents = 1;
  // Three times 0.1 is not 0.3: what rounding leaves between equal units is no spread.
  const auto alike = [&](std::size_t units) {
    return clustered_mean(Values(3 * units, 0.1), documents(units, 3), options);
  };
  EXPECT_FALSE(alike(9).primary.interval);
  EXPECT_FALSE(alike(9).t.interval);
  EXPECT_FALSE(alike(9).t.p_value);
  EXPECT_TRUE(alike(10).primary.interval);
  EXPECT_TRUE(alike(10).t.interval);
  EXPECT_FALSE(clustered_mean(Values(9, 0.0), documents(9, 1), options).t.interval);
}

// Skewed units: t's interval is symmetric, the bootstrap's reaches further to the long tail and less far to the other.
TEST(ClusteredMean, EachEndIsTheFurtherOne) {
  IntervalOptions options;
  options.min_documents = 1;
  for (const std::int64_t n : {9, 40, 300}) {
    Values values = noise(n, 11);
    for (double& value : values) value = std::exp(2.0 * value);
    const MeanEstimate mean = clustered_mean(values, documents(n, 1), options);
    EXPECT_EQ(mean.primary.kind, IntervalKind::bootstrap);
    EXPECT_EQ(mean.t.kind, IntervalKind::t);
    EXPECT_EQ(mean.primary.method,
              "studentised bootstrap and t (2000 samples) over " + std::to_string(n) + " documents");
    EXPECT_EQ(mean.primary.interval->low, mean.t.interval->low) << "t's, which knows of no skew";
    EXPECT_GT(mean.primary.interval->high, mean.t.interval->high) << "the bootstrap's";
    EXPECT_FALSE(mean.primary.p_value);
  }
}

// Of three units a ninth of the resamples is one unit alone, whose spread is 0 but for rounding: they say nothing.
TEST(ClusteredMean, ResamplesOfOneUnitAloneSayNothing) {
  IntervalOptions options;
  options.min_documents = 1;
  const MeanEstimate mean = clustered_mean(Values{0.1, 0.3, 0.7}, documents(3, 1), options);
  const double half = mean.t.interval->high - mean.t.value;
  EXPECT_LE(mean.t.interval->low - mean.primary.interval->low, half);
  EXPECT_LE(mean.primary.interval->high - mean.t.interval->high, half);
}

// The ratio estimator by hand: sums 3, -1 and 1 over 2, 1 and 1 tokens; R = 3/4, residuals 3/2, -7/4 and 1/4,
// se = sqrt(3/2 (9/4 + 49/16 + 1/16)) / 4 = sqrt(129) / 16; with 2 degrees of freedom the distribution function is
// 1/2 + t / (2 sqrt(2 + t²)).
TEST(ClusteredMean, TIntervalMatchesAHandComputation) {
  IntervalOptions options;
  options.min_documents = 1;
  const MeanEstimate mean = clustered_mean(Values{1.0, 2.0, -1.0, 1.0}, Documents{0, 0, 1, 2}, options);
  const double error = std::sqrt(129.0) / 16.0, reach = 0.95 * std::sqrt(2.0 / (4.0 * 0.975 * 0.025)) * error;
  EXPECT_DOUBLE_EQ(mean.t.value, 0.75);
  EXPECT_NEAR(mean.t.interval->high - mean.t.value, reach, 1e-12);
  EXPECT_NEAR(mean.t.value - mean.t.interval->low, reach, 1e-12);
  const double t = 0.75 / error;
  EXPECT_NEAR(*mean.t.p_value, 1.0 - t / std::sqrt(2.0 + t * t), 1e-12);
}

TEST(ClusteredMean, TIntervalOfEqualUnitsIsTheTextbookOne) {
  const Values values = {2.0, 4.0, 6.0};  // mean 4, s = 2
  // With 2 degrees of freedom the quantile at p is (2p - 1) sqrt(2 / (4p (1 - p))): 4.30265272975.
  const double t = 0.95 * std::sqrt(2.0 / (4.0 * 0.975 * 0.025));
  IntervalOptions options;
  options.min_documents = 1;
  const MeanEstimate mean = clustered_mean(values, Documents{0, 1, 2}, options);
  EXPECT_NEAR(mean.t.interval->high, 4.0 + t * 2.0 / std::sqrt(3.0), 1e-12);
}

TEST(ClusteredMean, ResamplesDocumentsWhereThereAreEnough) {
  const Values values = noise(20 * 100, 5);
  const MeanEstimate mean = clustered_mean(values, documents(20, 100), {});
  EXPECT_EQ(mean.primary.units, 20);
  EXPECT_EQ(mean.primary.method, "studentised bootstrap and t (2000 samples) over 20 documents");
  EXPECT_EQ(mean.t.method, "t over 20 documents");
}

TEST(ClusteredMean, CutsFewLongDocumentsIntoBlocks) {
  Documents document(1000, 0);  // round(1000 / 256) = 4 blocks
  document.resize(1100, 1);     // 100 tokens: one block
  const Values values = noise(1100, 6);
  const MeanEstimate mean = paired_delta(values, noise(1100, 7), document, {});
  EXPECT_EQ(mean.t.units, 5);
  EXPECT_EQ(mean.t.method, "paired t over 5 blocks of ~256 tokens");
  EXPECT_EQ(mean.primary.method, "paired studentised bootstrap and t (2000 samples) over 5 blocks of ~256 tokens");
}

TEST(ClusteredMean, BootstrapIsSeededAndReproducible) {
  Values values = noise(4000, 8);
  for (double& value : values) value = std::exp(value);  // so that the bootstrap's upper end is the further one
  const Documents document = documents(4, 1000);
  IntervalOptions options;
  options.seed = 17;
  const Interval first = *clustered_mean(values, document, options).primary.interval;
  const Interval again = *clustered_mean(values, document, options).primary.interval;
  EXPECT_EQ(first.low, again.low);
  EXPECT_EQ(first.high, again.high);
  options.seed = 18;
  EXPECT_NE(first.high, clustered_mean(values, document, options).primary.interval->high);
}

// The studentised bootstrap of a symmetric mean must agree with the normal theory that holds for it.
TEST(ClusteredMean, BootstrapAgreesWithTheTIntervalOnManyNormalUnits) {
  const Values values = noise(400, 9, 0.5);
  Documents document;
  for (std::int64_t i = 0; i < 400; ++i) document.push_back(i);
  IntervalOptions options;
  options.bootstrap_samples = 20000;
  const MeanEstimate mean = clustered_mean(values, document, options);
  const double width = mean.t.interval->high - mean.t.interval->low;
  EXPECT_NEAR(mean.primary.interval->low, mean.t.interval->low, 0.05 * width);
  EXPECT_NEAR(mean.primary.interval->high, mean.t.interval->high, 0.05 * width);
}

TEST(Perplexity, IsTheExponentialWithItsIntervalTransformed) {
  const Values log_prob = noise(6400, 10, -2.0);
  const Documents document = documents(64, 100);
  const Estimate mean = clustered_t(log_prob, document, {});
  const Estimate result = perplexity(log_prob, document, {});
  EXPECT_DOUBLE_EQ(result.value, std::exp(-mean.value));
  EXPECT_DOUBLE_EQ(result.interval->low, std::exp(-mean.interval->high));
  EXPECT_DOUBLE_EQ(result.interval->high, std::exp(-mean.interval->low));
  EXPECT_LT(result.interval->low, result.value);
  EXPECT_FALSE(result.p_value);
}

TEST(RelativePerplexityDelta, KeepsDigitsOfTinyDeltasAndOrdersItsInterval) {
  Estimate delta;
  delta.value = 1e-12;
  delta.interval = Interval{-2e-12, 4e-12};
  const Estimate relative = relative_perplexity_delta(delta);
  EXPECT_DOUBLE_EQ(relative.value, -1e-12 + 5e-25);
  EXPECT_DOUBLE_EQ(relative.interval->low, std::expm1(-4e-12));
  EXPECT_DOUBLE_EQ(relative.interval->high, std::expm1(2e-12));
}

TEST(DeltaByPosition, PutsEveryTokenInItsBucket) {
  Values baseline, arm;
  Documents document;
  std::vector<std::int64_t> position;
  for (std::int64_t i = 0; i < 300; ++i) {
    document.push_back(i / 100);
    position.push_back(i % 100);
    baseline.push_back(-2.0);
    arm.push_back(i % 100 < 10 ? -2.0 : -2.5);
  }
  const std::vector<std::int64_t> edges = {0, 10, 50, 100, 200};
  const std::vector<BucketDelta> buckets = delta_by_position(baseline, arm, document, position, edges, {});
  ASSERT_EQ(buckets.size(), 3U);  // nothing stands at 100 or later
  EXPECT_EQ(buckets[0].n, 30);
  EXPECT_EQ(buckets[1].n, 120);
  EXPECT_EQ(buckets[2].n, 150);
  EXPECT_EQ(buckets[0].delta.t.value, 0.0);
  EXPECT_DOUBLE_EQ(buckets[1].delta.t.value, -0.5);
  EXPECT_EQ(buckets[1].begin, 10);
  EXPECT_EQ(buckets[1].end, 50);
  EXPECT_DOUBLE_EQ(buckets[2].baseline_perplexity, std::exp(2.0));
  EXPECT_DOUBLE_EQ(buckets[2].arm_perplexity, std::exp(2.5));
}

TEST(Intervals, RefuseBadInput) {
  const Values two = {1.0, 2.0}, three = {1.0, 2.0, 3.0}, none;
  const auto mean = [](const Values& values, const Documents& document, const IntervalOptions& options = {}) {
    return [=] { clustered_mean(values, document, options); };
  };
  EXPECT_THAT(mean(none, {}), ThrowsMessage<std::invalid_argument>(HasSubstr("at least 1")));
  EXPECT_THAT(mean(two, {0}), ThrowsMessage<std::invalid_argument>(HasSubstr("document has 1 entries, expected 2")));
  EXPECT_THAT(mean(three, {0, 1, 0}),
              ThrowsMessage<std::invalid_argument>(HasSubstr("tokens of document 0 are not adjacent")));
  EXPECT_THAT(mean({1.0, std::numeric_limits<double>::infinity()}, {0, 1}),
              ThrowsMessage<std::invalid_argument>(HasSubstr("token 1 has a value that is not finite")));
  EXPECT_THAT(([&] {
                paired_delta(two, three, Documents{0, 0}, {});
              }),
              ThrowsMessage<std::invalid_argument>(HasSubstr("has 3 entries, expected 2")));
  IntervalOptions options;
  options.confidence = 1.0;
  EXPECT_THAT(mean(two, {0, 1}, options), ThrowsMessage<std::invalid_argument>(HasSubstr("confidence is 1.0")));
  options = {};
  options.bootstrap_samples = 99;
  EXPECT_THAT(mean(two, {0, 1}, options), ThrowsMessage<std::invalid_argument>(HasSubstr("bootstrap_samples is 99")));
  EXPECT_THAT(([&] {
                delta_by_position(two, two, Documents{0, 0}, Documents{0, 1}, Documents{0, 5, 5}, {});
              }),
              ThrowsMessage<std::invalid_argument>(HasSubstr("must ascend")));
}

}  // namespace
}  // namespace replayeval::metrics
