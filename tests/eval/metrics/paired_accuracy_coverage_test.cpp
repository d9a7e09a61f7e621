// How often intervals and tests of paired answers keep their promises, over simulated evaluations.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "eval/metrics/equivalence.h"
#include "eval/metrics/paired_accuracy.h"
#include "eval/metrics/power.h"
#include "eval/metrics/task_family.h"

namespace replayeval::metrics {
namespace {

constexpr int runs = 3000;  // the standard error of a share near 95 % is 0.4 %, near 5 % as well

struct Evaluation {
  int items = 0, repeats = 1;
  double gained = 0.0, lost = 0.0;  // true shares over all items
  // Items differ: an item is discordant in all its repeats or in none, with this share of them; 0: repeats independent.
  double item_share = 0.0;
};

PairedAccuracy simulate(const Evaluation& evaluation, std::mt19937_64& random) {
  std::uniform_real_distribution<double> uniform;
  std::vector<std::uint8_t> baseline, arm;
  std::vector<std::int64_t> item;
  const auto draw = [&] {
    const double u = uniform(random);
    return u < evaluation.gained ? 1 : u < evaluation.gained + evaluation.lost ? -1 : 0;
  };
  for (int i = 0; i < evaluation.items; ++i) {
    const int of_item = draw();
    for (int repeat = 0; repeat < evaluation.repeats; ++repeat) {
      const int change = uniform(random) < evaluation.item_share ? of_item : draw();
      baseline.push_back(change < 0 || (change == 0 && uniform(random) < 0.6) ? 1 : 0);
      arm.push_back(static_cast<std::uint8_t>(baseline.back() + change));
      item.push_back(i);
    }
  }
  return paired_accuracy(baseline, arm, item);
}

struct Rates {
  double covered = 0.0, rejected = 0.0;
};

Rates measure(const Evaluation& evaluation) {
  std::mt19937_64 random(71);
  const double truth = evaluation.gained - evaluation.lost;
  Rates rates;
  for (int run = 0; run < runs; ++run) {
    const PairedAccuracy result = simulate(evaluation, random);
    rates.covered += result.delta.interval->low <= truth && truth <= result.delta.interval->high ? 1.0 / runs : 0.0;
    rates.rejected += *result.delta.p_value < 0.05 ? 1.0 / runs : 0.0;
  }
  std::printf("%d x %d: 95 %% interval covers %.1f %%, test of level 5 %% rejects %.1f %%\n", evaluation.items,
              evaluation.repeats, 100 * rates.covered, 100 * rates.rejected);
  return rates;
}

TEST(PairedAccuracyCoverage, OfIndependentPairs) {
  for (const int items : {50, 200, 1000}) {
    const Rates rates = measure({.items = items, .repeats = 1, .gained = 0.04, .lost = 0.06, .item_share = 0.0});
    EXPECT_GE(rates.covered, 0.935);
    EXPECT_LE(rates.covered, 0.98);
  }
}

TEST(PairedAccuracyCoverage, OfRareDifferences) {
  EXPECT_GE(measure({.items = 100, .repeats = 1, .gained = 0.002, .lost = 0.01, .item_share = 0.0}).covered, 0.935);
}

TEST(PairedAccuracyCoverage, OfRepeatsThatHangTogether) {
  for (const double item_share : {0.3, 0.9}) {
    const Rates rates = measure({.items = 60, .repeats = 6, .gained = 0.05, .lost = 0.1, .item_share = item_share});
    EXPECT_GE(rates.covered, 0.93);
    EXPECT_LE(rates.covered, 0.985);
  }
}

// What the clusters are for: the same answers taken as independent miss the truth far too often.
TEST(PairedAccuracyCoverage, RepeatsTakenAsIndependentWouldMissMuch) {
  std::mt19937_64 random(72);
  const Evaluation evaluation{.items = 60, .repeats = 6, .gained = 0.05, .lost = 0.1, .item_share = 0.9};
  int covered = 0;
  for (int run = 0; run < 500; ++run) {
    const PairedAccuracy result = simulate(evaluation, random);
    const Interval interval = score_interval(
        {static_cast<double>(result.gained), static_cast<double>(result.lost), static_cast<double>(result.n)}, 0.95);
    covered += interval.low <= -0.05 && -0.05 <= interval.high ? 1 : 0;
  }
  EXPECT_LT(covered, 350);
}

TEST(PairedAccuracyCoverage, ExactTestsKeepTheirLevel) {
  EXPECT_LE(measure({.items = 150, .repeats = 1, .gained = 0.08, .lost = 0.08, .item_share = 0.0}).rejected, 0.055);
  const Rates clustered = measure({.items = 80, .repeats = 5, .gained = 0.08, .lost = 0.08, .item_share = 0.8});
  EXPECT_LE(clustered.rejected, 0.06);
  EXPECT_GE(clustered.rejected, 0.02) << "it must not refuse to reject at all";
}

TEST(PairedAccuracyCoverage, EquivalenceAtTheMarginIsFoundNoMoreThanItsLevel) {
  std::mt19937_64 random(73);
  int found = 0, found_alike = 0;
  for (int run = 0; run < runs; ++run) {
    found += equivalence(
                 simulate({.items = 500, .repeats = 1, .gained = 0.03, .lost = 0.06, .item_share = 0.0}, random), 0.03)
                 .equivalent;
    found_alike +=
        equivalence(simulate({.items = 800, .repeats = 1, .gained = 0.045, .lost = 0.045, .item_share = 0.0}, random),
                    0.03)
            .equivalent;
  }
  EXPECT_LE(found, 0.06 * runs);
  EXPECT_GE(found, 0.03 * runs);
  // pairs_to_show_equivalence(0.03, 0.09) is 896 for 80 %.
  EXPECT_GE(found_alike, 0.72 * runs);
}

TEST(PairedAccuracyCoverage, PowerIsWhatWasPlanned) {
  std::mt19937_64 random(74);
  const auto pairs = static_cast<int>(pairs_to_detect(0.03, 0.09));
  int found = 0;
  for (int run = 0; run < runs; ++run) {
    const PairedAccuracy result =
        simulate({.items = pairs, .repeats = 1, .gained = 0.03, .lost = 0.06, .item_share = 0.0}, random);
    found += result.delta.interval->high < 0.0 || result.delta.interval->low > 0.0;
  }
  EXPECT_NEAR(static_cast<double>(found) / runs, 0.8, 0.025);
}

TEST(PairedAccuracyCoverage, OfThePooledDelta) {
  std::mt19937_64 random(75);
  const std::vector<Evaluation> tasks{{.items = 100, .repeats = 1, .gained = 0.02, .lost = 0.06, .item_share = 0.0},
                                      {.items = 40, .repeats = 4, .gained = 0.05, .lost = 0.1, .item_share = 0.8},
                                      {.items = 300, .repeats = 1, .gained = 0.0, .lost = 0.004, .item_share = 0.0}};
  const double truth = (-0.04 - 0.05 - 0.004) / 3.0;
  int covered = 0;
  for (int run = 0; run < runs; ++run) {
    std::vector<PairedAccuracy> results;
    for (const Evaluation& task : tasks) results.push_back(simulate(task, random));
    const Interval interval = *pooled_delta(results, Weighting::tasks).interval;
    covered += interval.low <= truth && truth <= interval.high ? 1 : 0;
  }
  std::printf("pooled: %.1f %%\n", 100.0 * covered / runs);
  EXPECT_GE(covered, 0.935 * runs);
  EXPECT_LE(covered, 0.98 * runs);
}

}  // namespace
}  // namespace replayeval::metrics
