#include "eval/metrics/row_divergence.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <vector>

#include "eval/metrics/logit_spacing.h"

namespace replayeval::metrics {
namespace {

using Logits = std::vector<float>;

Logits random_logits(std::size_t vocab, std::uint64_t seed, double scale = 3.0) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal(0.0, scale);
  Logits logits(vocab);
  for (float& logit : logits) logit = static_cast<float>(normal(random));
  return logits;
}

// Differs in every logit by about `size`, as far as float32 can hold that.
Logits near(const Logits& logits, double size, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal(0.0, size);
  Logits result = logits;
  for (float& logit : result) logit = static_cast<float>(logit + normal(random));
  return result;
}

struct Reference {
  long double log_prob, kl, delta_p;
};

long double log_sum(const Logits& logits) {
  const long double max = *std::max_element(logits.begin(), logits.end());
  long double sum = 0;
  for (const float logit : logits) sum += std::exp(logit - max);
  return max + std::log(sum);
}

// By another route than the code's: sum of q - p + p log(p / q), whose terms are all non-negative, with
// log(p / q) - 1 + q / p summed by its series where it is small; 64 bits of mantissa.
Reference reference(const Logits& z, const Logits& w, std::int64_t target) {
  const long double lse_z = log_sum(z), lse_w = log_sum(w);
  long double kl = 0;
  for (std::size_t i = 0; i < z.size(); ++i) {
    const long double p = std::exp(z[i] - lse_z);
    const long double u = (static_cast<long double>(w[i]) - lse_w) - (z[i] - lse_z);  // log(q / p)
    long double term = 0;                                                             // e^u - 1 - u
    if (std::abs(u) < 0.5L) {
      long double power = u;
      for (int k = 2; k < 30; ++k) term += power *= u / k;
    } else {
      term = std::expm1(u) - u;
    }
    kl += p * term;
  }
  const auto t = static_cast<std::size_t>(target);
  return {w[t] - lse_w, kl, std::exp(w[t] - lse_w) - std::exp(z[t] - lse_z)};
}

RowScore score(const Logits& z, const Logits& w, std::int64_t target, Dtype dtype = Dtype::float32) {
  RowScorer scorer(static_cast<std::int64_t>(z.size()), dtype);
  EXPECT_TRUE(scorer.score_baseline(z.data(), target).finite);
  return scorer.score_arm(w.data(), target);
}

class RowDivergenceAtSize : public testing::TestWithParam<double> {};

TEST_P(RowDivergenceAtSize, MatchesLongDouble) {
  for (const std::size_t vocab : {1U, 2U, 7U, 31U, 64U, 1003U, 4096U}) {
    const Logits z = random_logits(vocab, vocab), w = near(z, GetParam(), 99 + vocab);
    const auto target = static_cast<std::int64_t>(vocab / 2);
    const Reference expected = reference(z, w, target);
    const RowScore found = score(z, w, target);
    ASSERT_TRUE(found.finite);
    const auto kl = static_cast<double>(expected.kl);
    EXPECT_NEAR(found.kl, kl, 1e-9 * kl + 1e-28) << vocab;
    EXPECT_GE(found.kl, 0.0);
    EXPECT_NEAR(found.log_prob, static_cast<double>(expected.log_prob), 1e-14 * (1.0 + std::abs(found.log_prob)));
    EXPECT_NEAR(found.delta_p, static_cast<double>(expected.delta_p), 1e-15) << vocab;
  }
}

// From one spacing of float32 (KL near 1e-14) to distributions that have nothing to do with each other.
INSTANTIATE_TEST_SUITE_P(Sizes, RowDivergenceAtSize, testing::Values(1e-7, 1e-6, 1e-4, 1e-2, 0.1, 0.3, 1.0, 10.0));

// The plain formula fails here: lse is rounded to 1e-15, the divergence is 1e-17 and smaller.
TEST(RowDivergence, OfASingleChangedLogitIsExact) {
  Logits z = random_logits(4096, 1);
  for (const std::size_t place : {0U, 17U, 4095U}) {
    Logits w = z;
    w[place] = std::nextafter(w[place], 100.0F);
    const Reference expected = reference(z, w, 3);
    const auto kl = static_cast<double>(expected.kl);
    ASSERT_GT(kl, 0.0);
    ASSERT_LT(kl, 1e-13);
    EXPECT_NEAR(score(z, w, 3).kl, kl, 1e-6 * kl) << place;
  }
}

TEST(RowDivergence, OfEqualLogitsIsExactlyZero) {
  for (const std::size_t vocab : {1U, 5U, 33U, 4096U, 5000U}) {
    const Logits z = random_logits(vocab, vocab + 1, 20.0);
    const RowScore found = score(z, Logits(z), 0);
    EXPECT_EQ(found.kl, 0.0);
    EXPECT_EQ(found.delta_p, 0.0);
    EXPECT_TRUE(found.same_top1);
    RowScorer scorer(static_cast<std::int64_t>(vocab), Dtype::float32);
    EXPECT_EQ(scorer.score_baseline(z.data(), 0).log_prob, found.log_prob);
  }
}

TEST(RowDivergence, IgnoresACommonShift) {
  Logits z = {1.0F, 2.0F, 3.0F, -4.0F}, w = z;
  for (float& logit : w) logit += 8.0F;
  EXPECT_LT(score(z, w, 1).kl, 1e-30);
  EXPECT_NEAR(score(z, w, 1).delta_p, 0.0, 1e-16);
}

TEST(RowDivergence, SurvivesExtremeLogits) {
  const Logits z = {3e4F, -3e4F, 0.0F}, w = {-3e4F, 3e4F, 0.0F};
  const RowScore found = score(z, w, 0);
  EXPECT_DOUBLE_EQ(found.kl, 6e4);
  EXPECT_DOUBLE_EQ(found.log_prob, -6e4);
  EXPECT_EQ(found.delta_p, -1.0);
  // All of the baseline's mass agrees; what it thinks impossible differs by more than exp() can hold.
  const Logits same_top = {1000.0F, -1000.0F, 0.0F}, other = {1000.0F, 0.0F, 0.0F};
  EXPECT_NEAR(score(same_top, other, 0).kl, 0.0, 1e-15);
}

TEST(RowDivergence, BitsDoNotDependOnTheAddress) {
  const Logits z = random_logits(1003, 5), w = near(z, 1e-3, 6);
  const RowScore expected = score(z, w, 4);
  for (std::size_t offset = 1; offset < 17; ++offset) {
    Logits shifted_z(offset, 0.0F), shifted_w(offset + 3, 0.0F);
    shifted_z.insert(shifted_z.end(), z.begin(), z.end());
    shifted_w.insert(shifted_w.end(), w.begin(), w.end());
    RowScorer scorer(1003, Dtype::float32);
    scorer.score_baseline(shifted_z.data() + offset, 4);
    const RowScore found = scorer.score_arm(shifted_w.data() + offset + 3, 4);
    EXPECT_EQ(found.kl, expected.kl);
    EXPECT_EQ(found.log_prob, expected.log_prob);
    EXPECT_EQ(found.delta_p, expected.delta_p);
  }
}

TEST(RowDivergence, RanksTheTarget) {
  const Logits z = {0.0F, 5.0F, 5.0F, -1.0F, 9.0F};
  EXPECT_EQ(score(z, z, 4).rank, 1);
  EXPECT_EQ(score(z, z, 1).rank, 2);
  EXPECT_EQ(score(z, z, 2).rank, 2);  // equals share a rank
  EXPECT_EQ(score(z, z, 3).rank, 5);
}

TEST(RowDivergence, ComparesTopTokensByTheLowestId) {
  const Logits z = {1.0F, 7.0F, 7.0F, 0.0F};
  EXPECT_TRUE(score(z, {0.0F, 8.0F, 1.0F, 2.0F}, 0).same_top1);
  EXPECT_FALSE(score(z, {0.0F, 1.0F, 8.0F, 2.0F}, 0).same_top1);
  // Far apart in the row, where another vector lane sees each.
  Logits wide = random_logits(300, 8, 0.1);
  wide[3] = wide[290] = 50.0F;
  Logits only_last = wide;
  only_last[3] = 49.0F;
  EXPECT_TRUE(score(wide, wide, 0).same_top1);
  EXPECT_FALSE(score(wide, only_last, 0).same_top1);
}

TEST(RowDivergence, FindsTiesAtTheSpacingOfTheLogitsType) {
  const float one_up = std::nextafter(20.0F, 30.0F), two_up = std::nextafter(one_up, 30.0F);
  EXPECT_TRUE(score({1.0F, 20.0F, 20.0F}, {1.0F, 20.0F, 20.0F}, 0).tie);
  EXPECT_TRUE(score({1.0F, 20.0F, one_up}, {1.0F, 20.0F, one_up}, 0).tie);
  EXPECT_FALSE(score({1.0F, 20.0F, two_up}, {1.0F, 20.0F, two_up}, 0).tie);
  // bfloat16 values near 20 lie 1/8 apart.
  EXPECT_TRUE(score({1.0F, 20.0F, 20.125F}, {1.0F, 20.0F, 20.125F}, 0, Dtype::bfloat16).tie);
  EXPECT_FALSE(score({1.0F, 20.0F, 20.25F}, {1.0F, 20.0F, 20.25F}, 0, Dtype::bfloat16).tie);
  EXPECT_FALSE(score({1.0F, 20.0F, 20.125F}, {1.0F, 20.0F, 20.125F}, 0, Dtype::float16).tie);
  EXPECT_FALSE(score({-2.0F}, {-2.0F}, 0).tie);  // nothing to tie with
}

TEST(RowDivergence, FindsATieWhereverTheTwoStand) {
  for (std::size_t first = 0; first < 70; first += 3)
    for (std::size_t second = first + 1; second < 70; second += 5) {
      Logits z = random_logits(70, first * 100 + second, 1.0);
      z[first] = z[second] = 40.0F;
      ASSERT_TRUE(score(z, z, 0).tie) << first << " " << second;
      z[second] = 39.0F;
      ASSERT_FALSE(score(z, z, 0).tie) << first << " " << second;
    }
}

TEST(RowDivergence, SeesEveryLogitThatIsNotFinite) {
  for (const float bad : {NAN, INFINITY, -INFINITY})
    for (std::size_t place = 0; place < 67; ++place) {
      Logits z = random_logits(67, 2), w = z;
      w[place] = bad;
      RowScorer scorer(67, Dtype::float32);
      ASSERT_TRUE(scorer.score_baseline(z.data(), 0).finite);
      ASSERT_FALSE(scorer.score_arm(w.data(), 0).finite) << place << " " << bad;
      ASSERT_FALSE(scorer.score_baseline(w.data(), 0).finite) << place << " " << bad;
    }
}

TEST(Spacing, IsTheDistanceToTheNextValue) {
  EXPECT_EQ(spacing(20.0, Dtype::float32), static_cast<double>(std::nextafter(20.0F, 30.0F)) - 20.0);
  EXPECT_EQ(spacing(-20.0, Dtype::bfloat16), 0.125);
  EXPECT_EQ(spacing(1.0, Dtype::float16), std::ldexp(1.0, -10));
  EXPECT_EQ(spacing(0.0, Dtype::float16), std::ldexp(1.0, -24));
  EXPECT_EQ(spacing(0.0, Dtype::float32), static_cast<double>(std::nextafter(0.0F, 1.0F)));
}

TEST(ProbabilityDifference, KeepsDigits) {
  const double ratio = (std::log(0.5) + 1e-13) - std::log(0.5);
  EXPECT_DOUBLE_EQ(probability_difference(std::log(0.5) + 1e-13, std::log(0.5)), 0.5 * (ratio + ratio * ratio / 2.0));
  EXPECT_EQ(probability_difference(0.0, -5000.0), 1.0);
  EXPECT_DOUBLE_EQ(probability_difference(-1.0, 0.0), std::exp(-1.0) - 1.0);
}

}  // namespace
}  // namespace replayeval::metrics
