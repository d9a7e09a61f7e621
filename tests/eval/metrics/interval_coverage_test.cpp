// How often the intervals hold the true value, over simulated evaluations with correlated tokens.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <random>

#include "eval/metrics/statistics.h"

namespace replayeval::metrics {
namespace {

struct Text {
  std::vector<double> differences;
  std::vector<std::int64_t> document;
};

// An autoregressive stream: neighbouring tokens share their surprises, as in text.
class Stream {
 public:
  Stream(std::mt19937_64& random, double correlation, std::function<double(std::mt19937_64&)> shock)
      : random_(random), correlation_(correlation), shock_(std::move(shock)) {
    for (int i = 0; i < 100; ++i) next();  // forget the start
  }
  double next() { return value_ = correlation_ * value_ + shock_(random_); }

 private:
  std::mt19937_64& random_;
  double correlation_, value_ = 0.0;
  std::function<double(std::mt19937_64&)> shock_;
};

double normal_shock(std::mt19937_64& random) { return std::normal_distribution<double>()(random); }
double heavy_shock(std::mt19937_64& random) { return std::student_t_distribution<double>(5.0)(random); }
// Mean 0, skewness 2: rare tokens lose much.
double skewed_shock(std::mt19937_64& random) { return 1.0 - std::exponential_distribution<double>()(random); }

struct Coverage {
  double bootstrap = 0.0, t = 0.0;
};

// The true mean is 0 in every simulated text.
Coverage coverage(int texts, const std::function<Text(std::mt19937_64&)>& simulate) {
  std::mt19937_64 random(20240607);
  IntervalOptions options;
  options.bootstrap_samples = 1000;
  int bootstrap = 0, t = 0;
  for (int i = 0; i < texts; ++i) {
    const Text text = simulate(random);
    options.seed = static_cast<std::uint64_t>(i);
    const MeanEstimate mean = clustered_mean(text.differences, text.document, options);
    const auto holds = [](const Estimate& estimate) {
      return estimate.interval->low <= 0.0 && 0.0 <= estimate.interval->high ? 1 : 0;
    };
    bootstrap += holds(mean.primary);
    t += holds(mean.t);
  }
  return {static_cast<double>(bootstrap) / texts, static_cast<double>(t) / texts};
}

// 1000 texts: the binomial standard error at 95 % is 0.7 %, so 92.5 to 97.5 % is 3.6 of them on either side.
constexpr int texts = 1000;

void expect_nominal(const Coverage& found) {
  testing::Test::RecordProperty("bootstrap", std::to_string(found.bootstrap));
  testing::Test::RecordProperty("t", std::to_string(found.t));
  std::printf("coverage of 95 %% intervals: bootstrap %.1f %%, t %.1f %%\n", 100 * found.bootstrap, 100 * found.t);
  EXPECT_GE(found.bootstrap, 0.925);
  EXPECT_LE(found.bootstrap, 0.975);
  EXPECT_GE(found.t, 0.925);
  EXPECT_LE(found.t, 0.975);
}

Text blocks_of_long_documents(std::mt19937_64& random, double correlation, double (*shock)(std::mt19937_64&)) {
  Text text;
  for (std::int64_t document = 0; document < 3; ++document) {
    Stream stream(random, correlation, shock);
    for (int i = 0; i < 5000; ++i) {
      text.differences.push_back(stream.next());
      text.document.push_back(document);
    }
  }
  return text;
}

TEST(IntervalCoverage, OverBlocksOfFewLongDocuments) {
  expect_nominal(coverage(texts, [](auto& random) { return blocks_of_long_documents(random, 0.8, normal_shock); }));
}

TEST(IntervalCoverage, OverBlocksWithHeavyTails) {
  expect_nominal(coverage(texts, [](auto& random) { return blocks_of_long_documents(random, 0.5, heavy_shock); }));
}

TEST(IntervalCoverage, OverBlocksWithSkewedTokens) {
  expect_nominal(coverage(texts, [](auto& random) { return blocks_of_long_documents(random, 0.5, skewed_shock); }));
}

// Documents differ in length and each has a level of its own, which only resampling of whole documents can see.
TEST(IntervalCoverage, OverDocumentsOfUnequalLengthWithLevelsOfTheirOwn) {
  expect_nominal(coverage(texts, [](std::mt19937_64& random) {
    Text text;
    for (std::int64_t document = 0; document < 50; ++document) {
      const int length = std::uniform_int_distribution<int>(50, 250)(random);
      const double level = 0.3 * normal_shock(random);
      Stream stream(random, 0.5, normal_shock);
      for (int i = 0; i < length; ++i) {
        text.differences.push_back(level + stream.next());
        text.document.push_back(document);
      }
    }
    return text;
  }));
}

// What the blocks are for: with units of one token, correlated text gets intervals far too short.
TEST(IntervalCoverage, UnitsOfOneTokenWouldMissMuch) {
  IntervalOptions options;
  options.block_tokens = 1;
  options.bootstrap_samples = 100;
  std::mt19937_64 random(3);
  int held = 0;
  for (int i = 0; i < 100; ++i) {
    const Text text = blocks_of_long_documents(random, 0.8, normal_shock);
    const Estimate t = clustered_t(text.differences, text.document, options);
    held += t.interval->low <= 0.0 && 0.0 <= t.interval->high ? 1 : 0;
  }
  EXPECT_LT(held, 75);
}

}  // namespace
}  // namespace replayeval::metrics
