#include "reports/gate/gate.h"

#include <gmock/gmock.h>

#include <cmath>
#include <fstream>
#include <limits>
#include <sstream>
#include <string>

#include "reports/gate/annotations.h"
#include "reports/gate/gate_json.h"
#include "reports/gate/gate_text.h"
#include "reports/gate/junit.h"
#include "reports/metric_names.h"
#include "reports/results_io.h"
#include "reports/results_schema.h"
#include "tests/reports/gate_results.h"

namespace replayeval::reports::gate {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

Rule rule(const std::string& metric, const Margin& margin, const std::vector<std::string>& arms = {"replay_bfloat16"}) {
  Rule made;
  made.name = "a rule";
  made.metric = metric;
  made.margin = margin;
  made.arms = arms;
  made.place = "p.yaml:3:5";
  return made;
}

Margin at_most(double bound) { return {.at_least = {}, .at_most = bound}; }
Margin at_least(double bound) { return {.at_least = bound, .at_most = {}}; }

Outcome judged(const Rule& one, const Results& results = gate_results()) {
  return judge({"p", {one}}, {"new", results}, std::nullopt);
}

Judgement only(const Rule& one, const Results& results = gate_results()) {
  const Outcome outcome = judged(one, results);
  EXPECT_EQ(outcome.judgements.size(), 1U);
  return outcome.judgements.at(0);
}

std::string fault_of(const Rule& one, const Results& results = gate_results()) {
  const Judgement judgement = only(one, results);
  EXPECT_EQ(judgement.word, Word::unusable);
  EXPECT_EQ(judged(one, results).exit_code(), 3);
  return sentence(judgement);
}

// ---- what a portable baseline keeps

TEST(GateStored, ComparesAnArmWithWhatWasKeptOfIt) {
  Results results = gate_results();
  Workload& workload = results.workloads.front();
  ASSERT_EQ(workload.kind, "perplexity");
  EXPECT_THAT(fault_of(rule("stored_delta.perplexity_relative", at_most(0.001)), results),
              HasSubstr("no workload that matches '*' has stored_delta.perplexity_relative"));
  StoredComparison row{"replay_bfloat16", "replay_bfloat16", {}, {}};
  row.deltas[names::perplexity_ratio] = {0.0004, 0.0002, 0.0006, {}, 0.95, "paired bootstrap"};
  row.divergence[names::kl_mean] = {2e-6, 1e-6, 3e-6, 24000};
  workload.against = {row};
  EXPECT_EQ(only(rule("stored_delta.perplexity_relative", at_most(0.001)), results).word, Word::pass);
  EXPECT_EQ(only(rule("stored_delta.perplexity_relative", at_most(0.0005)), results).word, Word::inconclusive);
  EXPECT_EQ(only(rule("stored_divergence.kl_mean", at_most(0.5e-6)), results).word, Word::regression);
  // The baseline arm is compared with its own past, too; here nothing was kept of it.
  EXPECT_THAT(fault_of(rule("stored_divergence.kl_mean", at_most(1.0), {results.baseline}), results),
              HasSubstr("the arm has no stored_divergence.kl_mean here"));
}

TEST(GateStored, AnotherArmDoesNotStandInUnlessTheRuleSaysSo) {
  Results results = gate_results();
  Workload& workload = results.workloads.front();
  StoredComparison row{"replay_bfloat16", "exact_float32", {}, {}};
  row.deltas[names::perplexity_ratio] = {0.0, 0.0, 0.0, {}, 0.95, "paired bootstrap"};
  workload.against = {row};
  Rule equal = rule("stored_delta.perplexity_relative", at_most(0.001));
  EXPECT_THAT(fault_of(equal, results),
              HasSubstr("the stored baseline keeps no arm 'replay_bfloat16'; the run was compared with its "
                        "'exact_float32' (`stored_arm: exact_float32` in the rule allows that)"));
  equal.stored_arm = "exact_*";
  EXPECT_EQ(only(equal, results).word, Word::pass);
  equal.stored_arm = "replay_*";
  EXPECT_THAT(fault_of(equal, results), HasSubstr("keeps no arm 'replay_bfloat16'"));
}

TEST(GateStored, AnArmOfTheSameNameMustBeTheSameArm) {
  Results results = gate_results();
  Workload& workload = results.workloads.front();
  StoredComparison row{"replay_bfloat16", "replay_bfloat16", {}, {}};
  row.deltas[names::perplexity_ratio] = {0.0, 0.0, 0.0, {}, 0.95, "paired bootstrap"};
  workload.against = {row};
  Rule equal = rule("stored_delta.perplexity_relative", at_most(0.001));
  workload.data["against"]["arms"] = results.arms;
  EXPECT_EQ(only(equal, results).word, Word::pass);
  for (nlohmann::json& arm : workload.data["against"]["arms"])
    if (arm.at("name") == "replay_bfloat16") arm["buffer_len"] = 8;
  EXPECT_THAT(fault_of(equal, results), HasSubstr("the stored 'replay_bfloat16' is not the same arm: /buffer_len "
                                                  "differs (`stored_arm: replay_bfloat16` in the rule allows that)"));
  equal.stored_arm = "replay_bfloat16";
  EXPECT_EQ(only(equal, results).word, Word::pass);
}

// ---- the three words

TEST(GateWords, AreByTheWholeInterval) {
  const Margin both{-1.0, 1.0};
  EXPECT_EQ(word_for({-0.5, 1.0}, both), Word::pass) << "bounds are inside";
  EXPECT_EQ(word_for({-0.5, 1.1}, both), Word::inconclusive);
  EXPECT_EQ(word_for({1.1, 3.0}, both), Word::regression);
  EXPECT_EQ(word_for({-3.0, -1.1}, both), Word::regression);
  EXPECT_EQ(word_for({-3.0, 3.0}, both), Word::inconclusive);
  EXPECT_EQ(word_for({-9.0, 1.0}, at_most(1.0)), Word::pass) << "the other side has no bound";
  EXPECT_EQ(word_for({1.0, 9.0}, at_most(1.0)), Word::inconclusive) << "it touches the bound";
  EXPECT_EQ(word_for({1.0, 9.0}, at_least(1.0)), Word::pass);
  EXPECT_EQ(word_for({0.5, 0.9}, at_least(1.0)), Word::regression);
  EXPECT_EQ(word_for({0.0, 0.0}, {0.0, 0.0}), Word::pass);
}

// The sample: PPL +1.3 % [+1.1, +1.5].
TEST(GateWords, OfAPerplexityDelta) {
  EXPECT_EQ(only(rule("delta.perplexity_relative", at_most(0.02))).word, Word::pass);
  EXPECT_EQ(only(rule("delta.perplexity_relative", at_most(0.01))).word, Word::regression);
  const Judgement open = only(rule("delta.perplexity_relative", at_most(0.0135)));
  EXPECT_EQ(open.word, Word::inconclusive);
  EXPECT_EQ(open.effect, Effect::fail);
  EXPECT_THAT(sentence(open),
              HasSubstr("delta.perplexity_relative of arm 'replay_bfloat16' on 'heldout': +1.30 [+1.10, "
                        "+1.50] % (95 %), expected at most +1.35 %"));
  EXPECT_THAT(need_text(open), HasSubstr("more tokens ("));
}

// Where no answer changed the interval is z² / (n + z²) wide to each side and shrinks with n, not with its root.
TEST(GateWords, NeededOfSharesFollowsTheScoreInterval) {
  constexpr double z2 = 3.8415;
  Measurement measured;
  measured.of_shares = true;
  measured.confidence = 0.95;
  measured.n = 40;
  measured.interval = Interval{-z2 / (40 + z2), z2 / (40 + z2)};
  Margin margin;
  margin.at_least = -0.01;
  const std::int64_t needed = *needed_to_decide(measured, margin);
  EXPECT_NEAR(static_cast<double>(needed), std::pow((1.96 * std::sqrt(0.0225) + 0.8416 * std::sqrt(0.0125)) / 0.01, 2),
              2.0);
  EXPECT_LT(z2 / (static_cast<double>(needed) + z2), 0.01) << "so many without a change do decide";
  // Many pairs differ: the law of a mean again.
  measured.n = 100000;
  measured.interval = Interval{-0.002, 0.002};
  EXPECT_NEAR(static_cast<double>(*needed_to_decide(measured, margin)), 100000 * 7.8489 / z2 * 0.04, 400.0);
}

// (z(0.975) + z(0.8))² = 7.849: the half width is 1.96 standard errors, and clearing a bound that is four tenths of it
// away takes (2.8016 / (1.96 · 0.4))² times as many.
TEST(GateWords, NeededIsWhatPowerAnalysisSays) {
  Measurement measured;
  measured.value = 0.6;
  measured.interval = Interval{-0.4, 1.6};
  measured.confidence = 0.95;
  measured.n = 1000;
  EXPECT_NEAR(static_cast<double>(*needed_to_decide(measured, at_most(1.0))), 1000 * 7.8489 / 3.8415 / 0.16, 2.0);
  EXPECT_NEAR(static_cast<double>(*needed_to_decide(measured, at_most(0.2))), 1000 * 7.8489 / 3.8415 / 0.16, 2.0);
  EXPECT_FALSE(needed_to_decide(measured, at_most(0.6))) << "on the bound";
  // Between two bounds each side may fail with half of 20 %: z(0.9) = 1.2816.
  EXPECT_NEAR(static_cast<double>(*needed_to_decide(measured, {-5.0, 1.0})), 1000 * 10.507 / 3.8415 / 0.16, 3.0);
  measured.n.reset();
  EXPECT_FALSE(needed_to_decide(measured, at_most(1.0)));
}

TEST(GateWords, ConsequencesAndExitCodes) {
  Rule open = rule("delta.perplexity_relative", at_most(0.0135));
  EXPECT_EQ(judged(open).exit_code(), 2);
  open.inconclusive = OnInconclusive::warn;
  EXPECT_EQ(judged(open).exit_code(), 0);
  EXPECT_EQ(only(open).effect, Effect::warn);
  open.inconclusive = OnInconclusive::pass;
  EXPECT_EQ(only(open).effect, Effect::pass);
  const Results results = gate_results();
  const auto code = [&](const std::vector<Rule>& rules) {
    return judge({"p", rules}, {"new", results}, std::nullopt).exit_code();
  };
  open.inconclusive = OnInconclusive::fail;
  const Rule bad = rule("delta.perplexity_relative", at_most(0.01)), lost = rule("delta.nothing", at_most(0.01)),
             good = rule("delta.perplexity_relative", at_most(0.02));
  EXPECT_EQ(code({good}), 0);
  EXPECT_EQ(code({good, open, lost, bad}), 1) << "a regression is certain whatever else is not";
  EXPECT_EQ(code({good, open, lost}), 3);
  EXPECT_EQ(code({good, open}), 2);
  EXPECT_EQ(Outcome().exit_code(), 3);
}

TEST(GateWords, AConfidenceThatTheIntervalDoesNotHaveCannotBeAsked) {
  Rule strict = rule("delta.perplexity_relative", at_most(0.02));
  strict.confidence = 0.99;
  EXPECT_THAT(fault_of(strict), HasSubstr("the interval is of 95 % confidence, the rule asks for 99 %; run with"));
  strict.confidence = 0.9;
  EXPECT_EQ(only(strict).word, Word::pass) << "the wider interval is only more careful";
}

TEST(GateWords, WithoutAnIntervalNothingCanBeJudged) {
  Rule largest = rule("divergence.kl_max", at_most(1.0));
  largest.inconclusive = OnInconclusive::pass;
  EXPECT_THAT(fault_of(largest), HasSubstr("no interval was computed; `compare: value`"));
  Results results = gate_results();
  Delta& delta = results.workloads.at(0).deltas.at("replay_bfloat16").at(names::perplexity_ratio);
  delta.low = delta.high = delta.confidence = {};
  delta.units = 2;
  EXPECT_THAT(fault_of(rule("delta.perplexity_relative", at_most(0.5)), results),
              HasSubstr("no interval was computed from 2 documents or blocks; `compare: value`"));
  largest.compare = Compare::value;
  EXPECT_EQ(only(largest).word, Word::pass);
  largest.margin = at_most(0.1);
  EXPECT_EQ(only(largest).word, Word::regression);
}

// The sample's intervals, had they come from so few blocks.
Results results_of_units(int units) {
  Results results = gate_results();
  for (auto& [arm, deltas] : results.workloads.at(0).deltas)
    for (auto& [name, delta] : deltas) delta.units = units;
  return results;
}

// Files of earlier revisions have the words alone.
TEST(GateWords, UnitsOutOfTheWordsOfAnEarlierRevision) {
  const Rule wide = rule("delta.perplexity_relative", at_most(100.0));
  const auto judged = [&](const std::string& method) {
    Results results = gate_results();
    for (auto& [arm, deltas] : results.workloads.at(0).deltas)
      for (auto& [name, delta] : deltas) delta.units = {}, delta.interval_kind = "", delta.method = method;
    return only(wide, results);
  };
  EXPECT_EQ(judged("paired bootstrap over 9 blocks of ~256 tokens").measured.units, 9);
  EXPECT_NE(judged("paired bootstrap over 9 blocks of ~256 tokens").word, Word::pass);
  EXPECT_EQ(judged("paired bootstrap over 10 blocks of ~256 tokens").word, Word::pass);
  EXPECT_FALSE(judged("paired bootstrap over 10 blocks of ~256 tokens").measured.of_shares);
  EXPECT_TRUE(judged("paired score interval (Tango), McNemar exact over 40 items").measured.of_shares);
  EXPECT_EQ(judged("paired over all").measured.units, std::nullopt);
}

TEST(GateWords, FewUnitsNeverPass) {
  for (const char* metric : {"delta.perplexity_relative", "divergence.kl_mean"}) {
    const Rule wide = rule(metric, at_most(100.0));
    EXPECT_EQ(only(wide, results_of_units(10)).word, Word::pass) << metric;
    const Judgement few = only(wide, results_of_units(9));
    EXPECT_EQ(few.word, Word::inconclusive) << metric;
    EXPECT_THAT(sentence(few), HasSubstr("the interval is of 9 documents or blocks, too few to vouch for a pass; "
                                         "expected 10 or more"));
    EXPECT_EQ(judged(wide, results_of_units(9)).exit_code(), 2);
  }
  EXPECT_EQ(only(rule("delta.perplexity_relative", at_most(0.001)), results_of_units(4)).word, Word::regression);
  Rule since_release = rule("delta.perplexity_relative", at_most(0.5));
  since_release.against = Against::release;
  const Results many = gate_results(), few = results_of_units(5);
  EXPECT_EQ(judge({"p", {since_release}}, {"new", many}, NamedRun{"old", few}).judgements.at(0).word,
            Word::inconclusive);
}

// ---- where numbers come from

TEST(GateMeasures, EveryGroup) {
  const auto value = [](Rule asked) {
    asked.compare = Compare::value;
    return only(asked).measured.value;
  };
  EXPECT_NEAR(value(rule("arm.perplexity", at_most(99))), std::exp(2.5) * 1.013, 1e-9);
  EXPECT_NEAR(value(rule("speed.tokens_per_second", at_least(1))), 2400.0, 1e-9);
  EXPECT_NEAR(value(rule("speed.over_baseline", at_least(1))), 1.5, 1e-12);
  EXPECT_EQ(value(rule("bytes.state", at_most(1e9))), 131072.0);
  EXPECT_EQ(value(rule("bytes.ring", at_most(1e9))), 8704.0);
  EXPECT_NEAR(value(rule("state_error.gold", at_most(1))), 4.2e-3, 1e-12);
  EXPECT_EQ(value(rule("storage.non_finite", at_most(0))), 0.0);
  Rule one_task = rule("delta.acc", at_least(-1));
  one_task.workloads = {"fir*"};
  EXPECT_NEAR(value(one_task), -0.01, 1e-12);
  EXPECT_EQ(only(one_task).measured.n, 1000);
  EXPECT_EQ(only(one_task).measured.unit, "documents");
}

TEST(GateMeasures, SpeedHasTheUncertaintyThatThePolicyStates) {
  Rule speed = rule("speed.over_baseline", at_least(1.4));
  speed.uncertainty = 0.1;  // 1.5 ± 0.15
  EXPECT_EQ(only(speed).word, Word::inconclusive);
  speed.uncertainty = 0.02;
  EXPECT_EQ(only(speed).word, Word::pass);
  speed.margin = at_least(1.6);
  EXPECT_EQ(only(speed).word, Word::regression);
}

TEST(GateMeasures, GlobsPickArmsAndWorkloads) {
  Rule all = rule("delta.perplexity_relative", at_most(0.5), {"*"});
  EXPECT_EQ(judged(all).judgements.size(), 5U) << "all arms but the baseline";
  all.arms = {"replay_*", "exact_bfloat16"};
  EXPECT_EQ(judged(all).judgements.size(), 4U);
  Rule tasks = rule("delta.acc", at_least(-0.5));
  EXPECT_EQ(judged(tasks).judgements.size(), 2U) << "the perplexity workload has no such metric";
}

TEST(GateMeasures, PoolsOfTasks) {
  Rule pooled = rule("delta.acc", at_least(-0.02));
  pooled.pool = Pool::questions;  // -0.67 ± 0.8 points
  EXPECT_EQ(only(pooled).word, Word::pass);
  EXPECT_EQ(only(pooled).measured.n, 1500);
  pooled.pool = Pool::tasks;
  EXPECT_NEAR(only(pooled).measured.value, -0.005, 1e-12);
  pooled.workloads = {"first"};
  EXPECT_THAT(fault_of(pooled),
              HasSubstr("the pooled tasks include 'second', which the rule's workloads do not match"));
  pooled.workloads = {"*"};
  pooled.arms = {"exact_bfloat16"};
  EXPECT_THAT(fault_of(pooled), HasSubstr("no two tasks have delta.acc of this arm"));
}

// ---- what cannot be judged

TEST(GateFaults, UnknownArm) {
  EXPECT_THAT(fault_of(rule("delta.perplexity_relative", at_most(1), {"replay_bf16"})),
              HasSubstr("no arm matches 'replay_bf16'; the results have exact_float32_again, exact_bfloat16, "));
  EXPECT_THAT(fault_of(rule("delta.perplexity_relative", at_most(1), {"exact_float32"})),
              HasSubstr("arm 'exact_float32' is the baseline, which delta.perplexity_relative is taken from"));
}

TEST(GateFaults, UnknownWorkload) {
  Rule lost = rule("delta.perplexity_relative", at_most(1));
  lost.workloads = {"held"};
  EXPECT_THAT(fault_of(lost), HasSubstr("no workload matches 'held'; the results have first, heldout, second"));
}

TEST(GateFaults, MissingMetric) {
  EXPECT_THAT(fault_of(rule("delta.perplexity", at_most(1))),
              AllOf(HasSubstr("no arm has delta.perplexity in this workload of kind perplexity; there are "),
                    HasSubstr("perplexity_relative")));
  EXPECT_THAT(fault_of(rule("delta.acc_norm", at_least(0))), HasSubstr("the rule matches nothing"));
  Rule of_tasks = rule("delta.perplexity_relative", at_most(1));
  of_tasks.workloads = {"fir*", "sec*"};
  EXPECT_THAT(fault_of(of_tasks), HasSubstr("the rule matches nothing: no workload that matches 'fir*', 'sec*' has "
                                            "delta.perplexity_relative; there are 'first' of kind task, 'second' of "
                                            "kind task"));
}

TEST(GateFaults, AnArmThatFailed) {
  Results results = gate_results();
  Workload& heldout = results.workloads.at(0);
  heldout.arms.erase("replay_bfloat16");
  heldout.deltas.erase("replay_bfloat16");
  heldout.divergence.erase("replay_bfloat16");
  // A glob that other arms satisfy does not hide it.
  const Outcome outcome = judged(rule("delta.perplexity_relative", at_most(1), {"*"}), results);
  EXPECT_EQ(outcome.exit_code(), 3);
  EXPECT_THAT(gate_text(outcome, false),
              HasSubstr("unusable     a rule: delta.perplexity_relative of arm 'replay_bfloat16' on 'heldout': the arm "
                        "has no delta.perplexity_relative here: it failed or was not run"));
}

TEST(GateFaults, APartialRun) {
  Results results = gate_results();
  results.task_families.clear();
  results.workloads.pop_back();
  const Outcome tasks = judged(rule("delta.acc", at_least(-0.5)), results);
  EXPECT_EQ(tasks.exit_code(), 3);
  EXPECT_THAT(gate_text(tasks, false), HasSubstr("on 'second': the config has this workload, the results do not"));
  const Outcome other = judged(rule("delta.perplexity_relative", at_most(1)), results);
  EXPECT_EQ(other.exit_code(), 0) << "what the rule asks for is there";
  EXPECT_THAT(other.warnings, testing::ElementsAre(HasSubstr("'second'")));
}

TEST(GateFaults, AWorkloadWithoutResults) {
  Results results = gate_results();
  results.task_families.clear();
  results.workloads.at(1).arms.clear();
  results.workloads.at(1).deltas.clear();
  results.workloads.at(1).data.erase("answers");
  EXPECT_THAT(gate_text(judged(rule("delta.acc", at_least(-0.5)), results), false),
              HasSubstr("on 'first': the workload holds no results of any arm"));
  results.workloads.clear();
  EXPECT_THROW(judged(rule("delta.acc", at_least(-0.5)), results), ResultsError);
}

TEST(GateFaults, NoRules) { EXPECT_THROW(judge({"p", {}}, {"new", gate_results()}, std::nullopt), ResultsError); }

TEST(GateFaults, NotANumber) {
  Results results = gate_results();
  Metric& kl = results.workloads.at(0).divergence.at("replay_bfloat16").at(names::kl_mean);
  kl.value = std::numeric_limits<double>::quiet_NaN();
  kl.low = kl.high = {};
  EXPECT_THAT(fault_of(rule("divergence.kl_mean", at_most(1)), results), HasSubstr("not a finite number"));
}

TEST(GateFaults, RandomWeightsHaveNoQuality) {
  Results results = gate_results();
  results.checkpoint["weights"] = "random";
  EXPECT_THAT(fault_of(rule("delta.perplexity_relative", at_most(1)), results), HasSubstr("random weights"));
  Rule bits = rule("divergence.kl_max", {0.0, 0.0}, {"exact_float32_again"});
  bits.compare = Compare::value;
  EXPECT_EQ(only(bits, results).word, Word::pass) << "bits are equal or not whatever the weights";
}

TEST(GateFaults, AHandEditedFile) {
  Results results = gate_results();
  results.workloads.at(0).deltas.at("replay_bfloat16").at(names::perplexity_ratio).high = 0.0131;
  EXPECT_THROW(judged(rule("delta.perplexity_relative", at_most(0.0132)), results), ResultsError);
}

// ---- against a release

Outcome since(const Rule& one, const Results& now, const Results& old) {
  return judge({"p", {one}}, {"new", now}, NamedRun{"old", old});
}

Rule against_release(const std::string& metric, const Margin& margin) {
  Rule made = rule(metric, margin);
  made.against = Against::release;
  return made;
}

TEST(GateRelease, ChangesOfDeltasHaveTheIntervalOfADifference) {
  Results old = gate_results();
  auto& deltas = old.workloads.at(0).deltas.at("replay_bfloat16");
  // The release's was +1.0 % ± 0.2: now +1.3 % ± 0.2, a change of 0.3 ± 0.28.
  auto& arm = old.workloads.at(0).arms.at("replay_bfloat16").metrics;
  arm.at(names::mean_log_likelihood).value = -2.5 - std::log1p(0.01);
  arm.at(names::perplexity).value = std::exp(2.5) * 1.01;
  for (const char* name : {names::delta_log_likelihood, names::delta_log_likelihood_t, names::perplexity_ratio}) {
    const bool ratio = name == names::perplexity_ratio;
    const double centre = -std::log1p(0.01);
    deltas.at(name).value = ratio ? 0.01 : centre;
    deltas.at(name).low = ratio ? std::expm1(-(centre + 0.002)) : centre - 0.002;
    deltas.at(name).high = ratio ? std::expm1(-(centre - 0.002)) : centre + 0.002;
  }
  const Results now = gate_results();
  const Judgement change =
      since(against_release("delta.perplexity_relative", at_most(0.004)), now, old).judgements.at(0);
  EXPECT_EQ(change.word, Word::inconclusive);
  EXPECT_NEAR(change.measured.value, 0.003, 1e-9);
  EXPECT_NEAR(change.measured.interval->high - change.measured.value, std::sqrt(2.0) * 0.002, 1e-4);
  EXPECT_THAT(sentence(change), HasSubstr("change since the release +0.30 [+0.01, +0.59] %"));
  EXPECT_EQ(since(against_release("delta.perplexity_relative", at_most(0.0001)), now, old).exit_code(), 1);
  EXPECT_EQ(since(against_release("delta.perplexity_relative", at_most(0.01)), now, old).exit_code(), 0);
}

TEST(GateRelease, SpeedsChangeByRatios) {
  Results now = gate_results();
  for (auto& [name, arm] : now.workloads.at(0).arms) arm.tokens_per_second *= 0.8;  // all alike: slower cores
  now.workloads.at(0).kernel_times.clear();
  Rule speed = against_release("speed.tokens_per_second", at_least(-0.1));
  speed.uncertainty = 0.05;
  const Results old = gate_results();
  const Judgement change = since(speed, now, old).judgements.at(0);
  EXPECT_EQ(change.word, Word::regression);
  EXPECT_NEAR(change.measured.value, -0.2, 1e-12);
  EXPECT_NEAR(change.measured.interval->high, -0.16, 1e-12) << "of the ratio, 0.8 ± 5 %";
  speed.margin = at_least(-0.25);
  EXPECT_EQ(since(speed, now, old).exit_code(), 0);
  now.environment["cpu"] = "Another processor";
  EXPECT_EQ(since(speed, now, old).judgements.at(0).word, Word::inconclusive);
  EXPECT_THAT(sentence(since(speed, now, old).judgements.at(0)), HasSubstr("speeds of two machines"));
}

TEST(GateRelease, TwoRunsMustAnswerTheSameQuestion) {
  const Results now = gate_results();
  const auto fault = [&](const std::function<void(Results&)>& edit) {
    Results old = gate_results();
    edit(old);
    const Outcome outcome = since(against_release("delta.perplexity_relative", at_most(1)), now, old);
    EXPECT_EQ(outcome.exit_code(), 3);
    return sentence(outcome.judgements.at(0));
  };
  EXPECT_THAT(fault([](Results& r) { r.workloads.at(0).data["sources"][1]["sha256"] = std::string(64, 'f'); }),
              HasSubstr("new and old: different data: /sources/1/sha256 of workload 'heldout' differs"));
  EXPECT_THAT(fault([](Results& r) { r.workloads.at(0).data["context"] = 2048; }), HasSubstr("/context of workload"));
  EXPECT_THAT(fault([](Results& r) { r.checkpoint["sha256"] = std::string(64, 'e'); }),
              HasSubstr("different checkpoints"));
  EXPECT_THAT(fault([](Results& r) { r.workloads.at(0).data["mode"] = "another"; }),
              HasSubstr("/mode of workload 'heldout' differs"));
  EXPECT_THAT(fault([](Results& r) { r.numerics["compute_dtype"] = "float16"; }),
              AllOf(HasSubstr("different numerics: compute_dtype was \"float16\" and is \""), Not(HasSubstr(","))));
  EXPECT_THAT(fault([](Results& r) { r.arms.at(5)["buffer_len"] = 8; }),
              HasSubstr("'replay_bfloat16' is not the same arm: /buffer_len differs"));
  EXPECT_THAT(fault([](Results& r) { r.workloads.erase(r.workloads.begin()); }),
              HasSubstr("old: has no workload 'heldout'"));
  Results moved = gate_results();
  moved.workloads.at(0).data["sources"][0]["path"] = "elsewhere/*.txt";
  moved.numerics.erase("compute_dtype");  // an older program did not say it
  EXPECT_EQ(since(against_release("delta.perplexity_relative", at_most(1)), now, moved).exit_code(), 0)
      << "where files lie does not matter";
  EXPECT_THAT(fault_of(against_release("delta.perplexity_relative", at_most(1))), HasSubstr("expected --baseline"));
}

// All intervals of the two runs' own are wide; of the change none is left.
TEST(GateRelease, ARunComparedWithItselfHasNotChanged) {
  const Results results = gate_results();
  for (const char* metric : {"delta.perplexity_relative", "divergence.kl_mean", "arm.perplexity", "delta.acc"}) {
    Rule strict = against_release(metric, {0.0, 0.0});
    strict.arms = {"replay_*"};
    const Outcome outcome = since(strict, results, results);
    for (const Judgement& judgement : outcome.judgements) {
      if (judgement.measured.metric == "arm.perplexity") continue;  // the sample has no interval of it
      EXPECT_EQ(judgement.word, Word::pass) << sentence(judgement);
      EXPECT_EQ(judgement.measured.interval->low, 0.0);
      EXPECT_EQ(judgement.measured.interval->high, 0.0);
    }
    EXPECT_THAT(outcome.warnings, testing::ElementsAre("old holds the run's own results: every change since it is 0"));
  }
}

TEST(GateRelease, TheSameNumbersToTheBitAreNoChange) {
  const Results old = gate_results();
  Results now = old;
  now.environment["date"] = "2030-01-01T00:00:00Z";  // another run
  const Rule strict = against_release("delta.perplexity_relative", {0.0, 0.0});
  const Outcome same = since(strict, now, old);
  EXPECT_EQ(same.exit_code(), 0);
  EXPECT_THAT(same.warnings, testing::IsEmpty());
  EXPECT_THAT(explanation(same), HasSubstr("both runs hold the same numbers, to the bit"));
  // One bit of another number of the arm, and the runs are two.
  now.workloads.at(0).divergence.at("replay_bfloat16").at(names::dp_rms).value *= 1.0 + 1e-15;
  const Judgement moved = since(strict, now, old).judgements.at(0);
  EXPECT_EQ(moved.word, Word::inconclusive);
  EXPECT_NEAR(moved.measured.interval->high, std::sqrt(2.0) * 0.002, 1e-4);
}

// As many right answers may be of other questions.
TEST(GateRelease, TheSameCountsMayBeAChange) {
  const Results old = gate_results();
  Results now = old;
  now.environment["date"] = "2030-01-01T00:00:00Z";
  Rule tasks = against_release("delta.acc", at_least(-0.01));
  tasks.workloads = {"first"};
  EXPECT_EQ(since(tasks, now, old).judgements.at(0).word, Word::inconclusive);
}

TEST(GateRelease, ABaselineThatNoRuleIsAgainstIsAMistake) {
  try {
    since(rule("delta.perplexity_relative", at_most(0.02)), gate_results(), gate_results());
    FAIL() << "nothing was thrown";
  } catch (const ResultsError& error) {
    EXPECT_THAT(error.what(), HasSubstr("--baseline old: no rule of policy 'p' is `against: release`"));
  }
}

TEST(GateRelease, WhatIsWrongWithAReleaseIsSaidOnce) {
  const Results now = gate_results();
  Rule delta = against_release("delta.perplexity_relative", at_most(1)),
       bytes = against_release("bytes.state", at_most(0));
  delta.arms = bytes.arms = {"replay_*"};
  delta.name = "cost";
  bytes.compare = Compare::value;
  const auto text_with = [&](const std::function<void(Results&)>& edit) {
    Results old = now;
    edit(old);
    const Outcome outcome = judge({"p", {delta, bytes}}, {"new", now}, NamedRun{"old", old});
    EXPECT_EQ(outcome.exit_code(), 3);
    EXPECT_EQ(annotations(outcome).find('\n'), annotations(outcome).size() - 1) << "one line";
    return gate_text(outcome, false);
  };
  EXPECT_THAT(text_with([](Results& r) { r.checkpoint["sha256"] = std::string(64, 'e'); }),
              AllOf(testing::StartsWith("unusable     cost, a rule: new and old: different checkpoints: "),
                    HasSubstr("\ncannot be judged: 0 of 2 judgements pass, 2 cannot be judged (exit code 3)\n")));
  EXPECT_THAT(
      text_with([](Results& r) { r.workloads.at(0).data["context"] = 2048; }),
      HasSubstr("different data: /context of workload 'heldout' differs; likewise arm 'replay_float32_bfloat16' "
                "on 'heldout', arm 'replay_bfloat16' on 'heldout'\n"));
}

TEST(GateForms, WhatOthersLackLikewiseIsNamed) {
  Rule all = rule("divergence.kl_*", at_most(1.0));
  const std::string text = gate_text(judged(all), false);
  EXPECT_THAT(text,
              HasSubstr("unusable     a rule: divergence.kl_max of arm 'replay_bfloat16' on 'heldout': no interval was "
                        "computed; `compare: value` holds the value itself against the margin; likewise "
                        "divergence.kl_median of arm 'replay_bfloat16' on 'heldout', divergence.kl_p99.9 of arm "
                        "'replay_bfloat16' on 'heldout'\n"));
  all.arms = {"*"};
  EXPECT_THAT(gate_text(judged(all), false), HasSubstr(" and 2 more\n"))
      << "5 arms, 3 metrics; one is spelt out, 12 named";
}

TEST(GateForms, NamesInResultsDoNotBreakLines) {
  Results results = gate_results();
  Workload& first = results.workloads.at(1);
  first.name = "first\npass: all 9 judgements pass\x1b[2J";
  results.task_families.clear();
  Rule tasks = rule("delta.acc", at_least(0.5));
  tasks.workloads = {"first*"};
  const std::string text = gate_text(judged(tasks, results), false);
  EXPECT_THAT(text, HasSubstr("on 'first?pass: all 9 judgements pass?[2J': "));
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
}

// ---- margins that hold whatever an arm does

Results generation_results(bool ignore_eos) {
  Results results = gate_results();
  Workload texts;
  texts.name = "greedy";
  texts.kind = "generation";
  texts.data = {{"max_tokens", 512}, {"end_tokens", nlohmann::json::array()}, {"stop", nlohmann::json::array()}};
  if (!ignore_eos) texts.data["end_tokens"].push_back(2);
  for (const char* arm : {"exact_float32", "replay_bfloat16"})
    texts.arms[arm].metrics = {{"truncated", {1.0, 0.99, 1.0, 256}},
                               {"length", {512.0, 512.0, 512.0, 256}},
                               {"looped", {0.97, 0.95, 0.99, 256}}};
  for (const char* name : {"truncated", "length", "looped"})
    texts.deltas["replay_bfloat16"][name] = {0.0, -0.01, 0.01, {}, 0.95, "paired", "score", 256};
  results.workloads.push_back(texts);
  results.config["workloads"].push_back({{"name", "greedy"}, {"kind", "generation"}});
  return results;
}

TEST(GateVacuous, LengthsOfTextsThatNothingEndsSayNothing) {
  const Results forced = generation_results(true);
  for (const auto& [metric, margin] : {std::pair{"delta.truncated", at_most(0.02)},
                                       {"delta.length", at_most(5)},
                                       {"delta.length", {-5, 5}},
                                       {"delta.truncated", {-0.02, 0.02}}}) {
    Rule asked = rule(metric, margin);
    const Judgement judgement = only(asked, forced);
    EXPECT_EQ(judgement.word, Word::inconclusive) << metric;
    EXPECT_THAT(sentence(judgement), HasSubstr("no token ends a text of this workload (`ignore_eos`), so every arm's "
                                               "have 512 tokens: "));
    EXPECT_EQ(judged(asked, forced).exit_code(), 2);
    EXPECT_FALSE(judgement.needed) << "more texts would not decide";
    EXPECT_THAT(gate_markdown(judged(asked, forced)), HasSubstr("no token ends a text of this workload"));
    asked.compare = Compare::value;
    EXPECT_EQ(only(asked, forced).word, Word::inconclusive) << "by value, too";
  }
  EXPECT_EQ(only(rule("delta.length", at_most(5)), generation_results(false)).word, Word::pass);
}

TEST(GateVacuous, NoArmCanBeFurtherThanTheEndOfTheScale) {
  const Results results = generation_results(false);
  // The baseline's: truncated 1, looped 0.97.
  const Judgement full = only(rule("delta.truncated", at_most(0.02)), results);
  EXPECT_EQ(full.word, Word::inconclusive);
  EXPECT_THAT(sentence(full), HasSubstr("the baseline's is 100 %, so the margin holds whatever the arm does"));
  EXPECT_EQ(only(rule("delta.looped", at_most(0.04)), results).word, Word::inconclusive);
  EXPECT_EQ(only(rule("delta.looped", at_most(0.02)), results).word, Word::pass) << "3 points are left";
  EXPECT_EQ(only(rule("delta.looped", {-0.04, 0.04}), results).word, Word::pass) << "it may fall";
  EXPECT_EQ(only(rule("delta.acc", at_least(-0.7)),
                 [] {
                   Results one = gate_results();
                   one.task_families.clear();
                   one.config["workloads"].erase(2);
                   one.workloads.pop_back();
                   return one;
                 }())
                .word,
            Word::inconclusive)
      << "61 or 62 % are right";
  Rule top = rule("divergence.same_top1", at_most(1.0));
  top.compare = Compare::value;
  EXPECT_EQ(only(top).word, Word::inconclusive);
  top.margin = {0.5, 1.0};
  EXPECT_EQ(only(top).word, Word::pass) << "it may be less";
}

TEST(GateVacuous, NothingIsBelowZeroThatCounts) {
  for (const char* metric : {"divergence.kl_mean", "bytes.state", "storage.saturated", "state_error.gold",
                             "arm.perplexity", "speed.tokens_per_second", "speed.over_baseline"}) {
    Rule none = rule(metric, at_least(0.0));
    none.compare = Compare::value;
    EXPECT_EQ(only(none).word, Word::inconclusive) << metric;
    EXPECT_THAT(sentence(only(none)), HasSubstr("no value of ")) << metric;
    none.margin.at_most = 1e12;
    EXPECT_EQ(only(none).word, Word::pass) << "more than that is possible: " << metric;
  }
  EXPECT_EQ(only(rule("delta.perplexity_relative", at_least(-1.0))).word, Word::inconclusive);
  EXPECT_EQ(only(rule("delta.perplexity_relative", at_least(-0.9))).word, Word::pass);
  EXPECT_EQ(only(rule("delta.mean_log_likelihood", at_least(-1.0))).word, Word::pass) << "nats have no end";
  Rule pooled = rule("delta.acc", at_least(-1.0));
  pooled.pool = Pool::questions;
  EXPECT_EQ(only(pooled).word, Word::inconclusive);
}

TEST(GateWords, AnIntervalOfAllConfidenceNeedsNothing) {
  Measurement measured;
  measured.value = 0.5;
  measured.interval = Interval{0.0, 1.0};
  measured.confidence = 1.0;
  measured.n = 100;
  EXPECT_FALSE(needed_to_decide(measured, at_most(0.7)));
}

// ---- forms

Outcome one_of_each() {
  Rule good = rule("delta.perplexity_relative", at_most(0.02)), bad = good, open = good, lost = good, warned = good;
  bad.name = "100 % <bad>, \"very\": bad";
  bad.margin = at_most(0.01);
  open.name = "open";
  open.margin = at_most(0.0135);
  warned = open;
  warned.name = "warned";
  warned.inconclusive = OnInconclusive::warn;
  lost.name = "lost";
  lost.arms = {"nobody"};
  return judge({"a|policy", {good, bad, open, warned, lost}}, {"new", gate_results()}, std::nullopt);
}

TEST(GateForms, JUnitCountsAndEscapes) {
  const std::string xml = junit_xml(one_of_each());
  EXPECT_THAT(xml, HasSubstr("<testsuite name=\"a|policy\" tests=\"5\" failures=\"2\" errors=\"1\" skipped=\"1\">"));
  EXPECT_THAT(xml, HasSubstr("name=\"100 % &lt;bad&gt;, &quot;very&quot;: bad / heldout / replay_bfloat16 / delta."));
  EXPECT_THAT(xml, HasSubstr("<failure type=\"regression\" message=\"delta.perplexity_relative of arm"));
  EXPECT_THAT(xml, HasSubstr("<skipped message=\"inconclusive: delta.perplexity_relative of arm"));
  EXPECT_THAT(xml, HasSubstr("<error type=\"unusable\" message=\"delta.perplexity_relative of arm 'nobody': no arm"));
  EXPECT_EQ(xml_escaped("a&b\n\x01"), "a&amp;b&#10;?");
  EXPECT_EQ(xml_escaped("\u00e9\uFFFE.\uFFFF\uFFFD"), "\u00e9?.?\uFFFD");
  EXPECT_THAT(junit_xml_of_fault("<gone>"), HasSubstr("message=\"&lt;gone&gt;\""));
}

TEST(GateForms, AnnotationsAreEscaped) {
  const std::string text = annotations(one_of_each());
  EXPECT_THAT(text,
              HasSubstr("::error title=regression%3A 100 %25 <bad>%2C \"very\"%3A bad::delta.perplexity_relative"));
  EXPECT_THAT(text, HasSubstr("::warning title=inconclusive%3A warned::"));
  EXPECT_THAT(text, HasSubstr("+1.30 [+1.10, +1.50] %25 (95 %25)"));
  EXPECT_THAT(text, Not(HasSubstr("a rule")));
  EXPECT_EQ(annotation_of_fault("two\nlines"), "::error title=gate::two%0Alines\n");
}

TEST(GateForms, AnnotationsAreWorstFirstAndNoMoreThanAreShown) {
  const Rule bad = rule("delta.perplexity_relative", at_most(0.01)),
             open = rule("delta.perplexity_relative", at_most(0.0135));
  Policy policy{"p", {}};
  for (int i = 0; i < 12; ++i) {
    policy.rules.push_back(open);
    policy.rules.back().name = "open " + std::to_string(i);
  }
  policy.rules.push_back(bad);
  const std::string text = annotations(judge(policy, {"new", gate_results()}, std::nullopt));
  EXPECT_THAT(text, testing::StartsWith("::error title=regression%3A a rule::"));
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 10);
  EXPECT_THAT(text, testing::EndsWith("::error title=gate::4 more like these are in the job's log and summary\n"));
  policy.rules.resize(10);
  EXPECT_THAT(annotations(judge(policy, {"new", gate_results()}, std::nullopt)), Not(HasSubstr("more like these")));
}

TEST(GateForms, EveryRuleHasALineWithItsWorstWord) {
  Rule good = rule("delta.perplexity_relative", at_most(0.02)),
       mixed = rule("delta.perplexity_relative", at_most(0.0005), {"*"});
  mixed.name = "mixed";
  mixed.inconclusive = OnInconclusive::pass;
  const Outcome outcome = judge({"p", {good, mixed}}, {"new", gate_results()}, std::nullopt);
  const std::string text = gate_text(outcome, false);
  EXPECT_THAT(text,
              HasSubstr("\n\npass         a rule: the only judgement passes; delta.perplexity_relative at most +2 %\n"
                        "regression   mixed: 3 of 5 judgements pass, 2 are regressions; "
                        "delta.perplexity_relative at most +0.05 %\n"
                        "regression: 4 of 6 judgements pass, 2 are regressions (exit code 1)\n"));
  mixed.margin = at_most(0.0135);
  EXPECT_THAT(
      gate_text(judge({"p", {mixed}}, {"new", gate_results()}, std::nullopt), false),
      HasSubstr("\ninconclusive mixed: 4 of 5 judgements pass, 1 is inconclusive, which the policy lets through; "));
}

TEST(GateForms, MarkdownHasARowAJudgementWorstFirst) {
  const std::string text = gate_markdown(one_of_each());
  EXPECT_THAT(
      text,
      HasSubstr("### Gate a\\|policy: regression: 1 of 5 judgements pass, 1 is a regression, 1 cannot be judged, 2 are "
                "inconclusive (1 of them let through by the policy) (exit code 1)\n"));
  EXPECT_LT(text.find("**regression**"), text.find("**unusable**"));
  EXPECT_LT(text.find("**inconclusive (fail)**"), text.find("| inconclusive (warn)"));
  EXPECT_LT(text.find("| inconclusive (warn)"), text.find("| pass |"));
}

TEST(GateForms, JsonMatchesItsSchema) {
  const nlohmann::json json = to_json(one_of_each());
  EXPECT_EQ(json.at("exit_code"), 1);
  EXPECT_EQ(json.at("judgements").size(), 5U);
  EXPECT_FALSE(json.at("judgements").at(4).contains("value")) << "what cannot be judged has no number";
  nlohmann::json broken = json;
  broken["judgements"][0]["word"] = "maybe";
  EXPECT_THROW(validate_gate(broken), ResultsError);
  broken = json;
  broken["judgements"] = nlohmann::json::array();
  EXPECT_THROW(validate_gate(broken), ResultsError);
}

TEST(GateForms, ExplanationSaysRuleIntervalAndNeed) {
  const std::string text = explanation(one_of_each());
  EXPECT_THAT(text, HasSubstr("open (p.yaml:3:5)\n  rule: delta.perplexity_relative at most +1.35 %, 95 % confidence, "
                              "inconclusive: fail\n"));
  EXPECT_THAT(text, HasSubstr("  interval: paired bootstrap over 37 documents\n"));
  EXPECT_THAT(text, HasSubstr("  tokens: 24,000; "));
  EXPECT_THAT(text, HasSubstr("each of 4 judgements by interval calls a regression"));
  EXPECT_THAT(text, HasSubstr("0.1 of them on average at most"));
}

}  // namespace
}  // namespace replayeval::reports::gate
