// How often the gate is right: regressions of known size planted around its margin into real results, over many seeds.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <random>
#include <string>
#include <vector>

#include "eval/metrics/bootstrap.h"
#include "eval/metrics/paired_accuracy.h"
#include "eval/metrics/power.h"
#include "eval/metrics/statistics.h"
#include "reports/gate/gate.h"
#include "reports/metric_names.h"
#include "tests/eval/metrics/real_vectors.h"

namespace replayeval::reports::gate {
namespace {

constexpr int runs = 2000;
constexpr double confidence = 0.95, alpha = (1.0 - confidence) / 2.0;

Delta delta_of(const metrics::Estimate& estimate) {
  return {.value = estimate.value,
          .low = estimate.interval->low,
          .high = estimate.interval->high,
          .p_value = estimate.p_value,
          .confidence = estimate.confidence,
          .method = estimate.method,
          .interval_kind = estimate.kind == metrics::IntervalKind::score ? "score" : "t",
          .units = estimate.units};
}

// The results of a run of one workload: what the gate reads of them.
Results run_results(const std::string& kind, const std::string& metric, const Delta& delta,
                    const std::string& own_metric, double baseline, double arm, std::int64_t n) {
  Results results;
  results.config = {{"confidence", confidence}};
  results.checkpoint = {{"sha256", std::string(64, 'c')}};
  results.arms = {{{"name", "exact"}, {"executor", "exact"}}, {{"name", "arm"}, {"executor", "replay"}}};
  results.baseline = "exact";
  Workload workload;
  workload.name = "w";
  workload.kind = kind;
  workload.arms["exact"].metrics[own_metric] = {.value = baseline, .low = {}, .high = {}, .n = n};
  workload.arms["arm"].metrics[own_metric] = {.value = arm, .low = {}, .high = {}, .n = n};
  workload.deltas["arm"][metric] = delta;
  results.workloads.push_back(workload);
  return results;
}

Judgement judged(const Results& results, const std::string& metric, const Margin& margin) {
  Rule rule;
  rule.name = "planted";
  rule.metric = metric;
  rule.margin = margin;
  rule.confidence = confidence;
  return judge({"p", {rule}}, {"r", results}, std::nullopt).judgements.at(0);
}

struct Rates {
  double pass = 0.0, regression = 0.0, inconclusive = 0.0;
  void add(Word word) {
    (word == Word::pass ? pass : word == Word::regression ? regression : inconclusive) += 1.0 / runs;
  }
  void print(const char* what) const {
    std::printf("%-58s pass %5.1f %%, regression %5.1f %%, inconclusive %5.1f %%\n", what, 100.0 * pass,
                100.0 * regression, 100.0 * inconclusive);
  }
};

// ---- accuracy: real answers of the baseline; the arm's are these with flips

// The shares of right and of wrong answers that flip so that the true delta is `delta` and a share of `discordant`
// differs.
struct Flips {
  double lost = 0.0, gained = 0.0;
  Flips(double delta, double discordant, double accuracy)
      : lost((discordant - delta) / 2.0 / accuracy), gained((discordant + delta) / 2.0 / (1.0 - accuracy)) {}
};

double accuracy_of(const std::vector<std::uint8_t>& right) {
  double sum = 0.0;
  for (const std::uint8_t one : right) sum += one;
  return sum / static_cast<double>(right.size());
}

Results accuracy_run(double delta, double discordant, std::int64_t documents, std::mt19937_64& random) {
  static const std::vector<std::uint8_t> population = metrics::right_answers();
  const Flips flips(delta, discordant, accuracy_of(population));
  std::vector<std::uint8_t> baseline, arm;
  std::vector<std::int64_t> item;
  for (std::int64_t i = 0; i < documents; ++i) {
    const std::uint8_t right = population[metrics::draw_below(random, population.size())];
    const bool flipped = metrics::uniform(random) < (right != 0 ? flips.lost : flips.gained);
    baseline.push_back(right);
    arm.push_back(flipped ? 1 - right : right);
    item.push_back(i);
  }
  const metrics::PairedAccuracy pairs = metrics::paired_accuracy(baseline, arm, item, confidence);
  return run_results("task", "acc", delta_of(pairs.delta), "acc", pairs.baseline, pairs.arm, pairs.n);
}

Judgement accuracy_trial(double delta, double discordant, std::int64_t documents, const Margin& margin,
                         std::mt19937_64& random) {
  return judged(accuracy_run(delta, discordant, documents, random), "delta.acc", margin);
}

Rates accuracy_rates(double delta, double discordant, std::int64_t documents, const Margin& margin) {
  std::mt19937_64 random(20240607);
  Rates rates;
  for (int run = 0; run < runs; ++run) rates.add(accuracy_trial(delta, discordant, documents, margin, random).word);
  return rates;
}

constexpr double margin_of_points = 0.02, discordant = 0.06;

TEST(GateRates, AnAccuracyOnItsMarginIsCalledNeitherWayMoreThanItsLevel) {
  for (const std::int64_t documents : {300, 1000, 3000}) {
    const Rates rates = accuracy_rates(-margin_of_points, discordant, documents, {-margin_of_points, std::nullopt});
    rates.print(("-2 points, margin -2 points, " + std::to_string(documents) + " documents:").c_str());
    EXPECT_LE(rates.regression, alpha + metrics::slack(alpha, runs));
    EXPECT_LE(rates.pass, alpha + metrics::slack(alpha, runs));
    EXPECT_GE(rates.regression, alpha / 3.0) << "it must not refuse to call one at all";
  }
}

TEST(GateRates, ARegressionBehindTheMarginIsFoundAsOftenAsItsPowerSays) {
  // Twice the margin: 2 points to find.
  const auto documents = metrics::pairs_to_detect(margin_of_points, discordant, {confidence, 0.8});
  const Rates rates = accuracy_rates(-2.0 * margin_of_points, discordant, documents, {-margin_of_points, std::nullopt});
  rates.print(("-4 points, margin -2 points, " + std::to_string(documents) + " documents:").c_str());
  EXPECT_NEAR(rates.regression, 0.8, 0.05);  // the formula's share of discordant pairs is that of a difference from 0
  EXPECT_LE(rates.pass, 0.001);
}

TEST(GateRates, NoChangeBetweenTwoMarginsPassesAsOftenAsItsPowerSays) {
  // pairs_to_show_equivalence() counts for tests of level 1 - confidence; the gate's are of half of it.
  const metrics::Power power{1.0 - alpha, 0.8};
  const auto documents = metrics::pairs_to_show_equivalence(margin_of_points, discordant, power);
  const Rates rates = accuracy_rates(0.0, discordant, documents, {-margin_of_points, margin_of_points});
  rates.print(("0 points, margin ±2 points, " + std::to_string(documents) + " documents:").c_str());
  EXPECT_NEAR(rates.pass, 0.8, 0.03);
  EXPECT_LE(rates.regression, 0.0005);
}

// A judgement that is inconclusive says how many documents decide: as many decide four times in five.
TEST(GateRates, AsManyDocumentsAsItAsksForDecide) {
  std::mt19937_64 random(7);
  for (const double delta : {-0.005, -0.045}) {
    const Margin margin{-margin_of_points, std::nullopt};
    // One such judgement whose value is the true delta.
    Measurement measured;
    for (;;) {
      const Judgement found = accuracy_trial(delta, discordant, 200, margin, random);
      if (found.word != Word::inconclusive || std::abs(found.measured.value - delta) > 1e-9) continue;
      measured = found.measured;
      break;
    }
    const std::int64_t needed = *needed_to_decide(measured, margin);
    const Rates rates = accuracy_rates(delta, discordant, needed, margin);
    rates.print((std::to_string(100.0 * delta) + " points, margin -2 points, the " + std::to_string(needed) +
                 " documents asked for:")
                    .c_str());
    // The interval that asked is itself of 200 documents: its width is not that of the population.
    EXPECT_GE(delta > -margin_of_points ? rates.pass : rates.regression, 0.7);
  }
}

// The change since a release is the difference of two deltas, each with its own interval, taken as independent. On
// other documents it covers what it says; on the same ones, whose luck both share, more.
TEST(GateRates, TheIntervalOfAChangeSinceTheReleaseCoversIt) {
  static const std::vector<std::uint8_t> population = metrics::right_answers();
  constexpr double then = -0.01, now = -0.03;
  for (const bool same_documents : {false, true}) {
    std::mt19937_64 random(13);
    int held = 0;
    for (int run = 0; run < runs; ++run) {
      const std::uint64_t seed = random();
      std::mt19937_64 first(seed), second(same_documents ? seed : random());
      const Results old = accuracy_run(then, discordant, 1000, first),
                    fresh = accuracy_run(now, discordant, 1000, second);
      Rule rule;
      rule.name = "since";
      rule.metric = "delta.acc";
      rule.margin.at_least = 0.0;
      rule.against = Against::release;
      const Interval interval =
          *judge({"p", {rule}}, {"new", fresh}, NamedRun{"old", old}).judgements.at(0).measured.interval;
      held += interval.low <= now - then && now - then <= interval.high ? 1 : 0;
    }
    const double share = static_cast<double>(held) / runs;
    std::printf("change since a release, %s documents: %.1f %%\n", same_documents ? "the same" : "other",
                100.0 * share);
    EXPECT_GE(share, 0.93);
    EXPECT_LE(share, same_documents ? 1.0 : 0.97);
  }
}

// ---- perplexity: real blocks of text under a real arm, moved by a known amount

Rates perplexity_rates(std::size_t arm, double shift_of_ratio, std::size_t blocks, const Margin& margin) {
  const std::vector<metrics::TextPiece> population = metrics::text_pieces(4);
  double mean = 0.0;
  for (const metrics::TextPiece& piece : population)
    mean += piece.arms[arm].delta / piece.tokens / static_cast<double>(population.size());
  // Every token's log-probability is moved by as much as puts the true ratio where it is wanted.
  const double shift = -std::log1p(shift_of_ratio) - mean;
  std::mt19937_64 random(11);
  Rates rates;
  for (int run = 0; run < runs; ++run) {
    std::vector<double> values;
    std::vector<std::int64_t> document;
    for (std::size_t b = 0; b < blocks; ++b) {
      const metrics::TextPiece& piece = population[metrics::draw_below(random, population.size())];
      values.push_back(piece.arms[arm].delta / piece.tokens + shift);
      document.push_back(static_cast<std::int64_t>(b));
    }
    metrics::IntervalOptions options;
    options.bootstrap_samples = 500;
    options.seed = static_cast<std::uint64_t>(run);
    options.confidence = confidence;
    options.min_documents = 1;
    const metrics::Estimate ratio =
        metrics::relative_perplexity_delta(metrics::clustered_mean(values, document, options).primary);
    const auto n = static_cast<std::int64_t>(blocks) * 256;
    rates.add(judged(run_results("perplexity", names::perplexity_ratio, delta_of(ratio), names::perplexity, 18.0,
                                 18.0 * (1.0 + ratio.value), n),
                     "delta.perplexity_relative", margin)
                  .word);
  }
  return rates;
}

// Blocks of exact-bf16 are skewed (-2.4): of 96 of them the interval ends too low, on the costly side, somewhat more
// often than it should, though both sides together are what they ought to be. replay-bf16's are not.
TEST(GateRates, APerplexityOnItsMarginIsCalledNeitherWayMoreThanItsLevel) {
  const Rates skewed = perplexity_rates(0, 0.005, 96, {std::nullopt, 0.005});
  skewed.print("exact-bf16, PPL +0.5 %, margin 0.5 %, 96 blocks:");
  EXPECT_LE(skewed.regression, alpha + metrics::slack(alpha, runs)) << "false alarms";
  EXPECT_LE(skewed.pass, 2.0 * alpha);
  EXPECT_LE(skewed.pass + skewed.regression, 2.0 * alpha + 0.02 + metrics::slack(2.0 * alpha, runs));
  const Rates even = perplexity_rates(1, 0.005, 96, {std::nullopt, 0.005});
  even.print("replay-bf16, PPL +0.5 %, margin 0.5 %, 96 blocks:");
  EXPECT_LE(even.regression, alpha + metrics::slack(alpha, runs));
  EXPECT_LE(even.pass, alpha + metrics::slack(alpha, runs));
}

// As far from the margin as so many blocks find with 80 % power, behind it and inside.
struct BothSides {
  Rates behind, inside;
};

BothSides at_detectable_distance(std::size_t arm, std::size_t blocks) {
  metrics::RunningMoments moments;
  for (const metrics::TextPiece& piece : metrics::text_pieces(4)) moments.add(piece.arms[arm].delta / piece.tokens);
  const double standard_error = std::sqrt(moments.variance() / static_cast<double>(blocks));
  const double distance = metrics::minimum_detectable_mean(standard_error, {confidence, 0.8});
  const Margin margin{std::nullopt, 0.005};
  const double bound = std::log1p(0.005);
  return {perplexity_rates(arm, std::expm1(bound + distance), blocks, margin),
          perplexity_rates(arm, std::expm1(bound - distance), blocks, margin)};
}

TEST(GateRates, APerplexityBehindItsMarginIsFoundAsOftenAsItsPowerSays) {
  const BothSides even = at_detectable_distance(1, 96);
  even.behind.print("replay-bf16, as far behind the margin as 96 blocks find:");
  even.inside.print("replay-bf16, as far inside:");
  EXPECT_NEAR(even.behind.regression, 0.8, 0.05);
  EXPECT_NEAR(even.inside.pass, 0.8, 0.05);
  EXPECT_LE(even.behind.pass + even.inside.regression, 0.002) << "the wrong word";
  // Skewed blocks: each end is the further one of a skewed and an even interval, so that regressions are found as soon
  // as t's finds them and a pass takes more text.
  const BothSides skewed = at_detectable_distance(0, 96);
  skewed.behind.print("exact-bf16, as far behind the margin as 96 blocks find:");
  skewed.inside.print("exact-bf16, as far inside:");
  EXPECT_GE(skewed.behind.regression, 0.8);
  EXPECT_GE(skewed.inside.pass, 0.55);
  EXPECT_LE(skewed.inside.pass, 0.8);
  EXPECT_LE(skewed.behind.pass + skewed.inside.regression, 0.002) << "the wrong word";
}

}  // namespace
}  // namespace replayeval::reports::gate
