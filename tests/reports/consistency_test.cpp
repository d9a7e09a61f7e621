// Every rule of consistency.h, broken by one edit: the place and what was expected are in the message.
#include "reports/consistency.h"

#include <gmock/gmock.h>

#include <cmath>
#include <functional>
#include <string>

#include "reports/metric_names.h"
#include "reports/results_io.h"
#include "tests/reports/gate_results.h"

namespace replayeval::reports {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::string fault_after(const std::function<void(Results&)>& edit) {
  Results results = gate_results();
  edit(results);
  try {
    check_consistency(results, "r.json");
  } catch (const ResultsError& error) {
    return error.what();
  }
  return "consistent";
}

Workload& heldout(Results& results) { return results.workloads.at(0); }
Delta& delta(Results& results, const char* name) { return heldout(results).deltas.at("replay_bfloat16").at(name); }

TEST(Consistency, WhatARunWritesIsConsistent) {
  EXPECT_EQ(fault_after([](Results&) {}), "consistent");
}

TEST(Consistency, AnIntervalHoldsItsValue) {
  EXPECT_THAT(fault_after([](Results& r) { heldout(r).divergence.at("exact_bfloat16").at("kl_mean").low = 1.0; }),
              AllOf(HasSubstr("r.json: /workloads/0/divergence/exact_bfloat16/kl_mean: value 0.00031 lies outside its "
                              "interval [1, "),
                    HasSubstr("the results contradict themselves")));
  EXPECT_THAT(fault_after([](Results& r) { delta(r, names::delta_log_likelihood).high = -0.5; }),
              HasSubstr("/workloads/0/deltas/replay_bfloat16/mean_log_likelihood: value"));
  EXPECT_THAT(fault_after([](Results& r) { r.task_families.at(0).by_task.high = -0.1; }),
              HasSubstr("/task_families/0/by_task: value"));
}

TEST(Consistency, DeltasAreTheDifferencesOfTheMetrics) {
  EXPECT_THAT(fault_after([](Results& r) {
                heldout(r).arms.at("replay_bfloat16").metrics.at(names::mean_log_likelihood).value += 1e-6;
              }),
              HasSubstr("exp(-mean)"));
  EXPECT_THAT(fault_after([](Results& r) {
                auto& metrics = heldout(r).arms.at("replay_bfloat16").metrics;
                metrics.at(names::mean_log_likelihood).value += 1e-6;
                metrics.at(names::perplexity).value *= std::exp(-1e-6);
              }),
              HasSubstr("(the two arms' difference)"));
  EXPECT_THAT(fault_after([](Results& r) { r.workloads.at(1).deltas.at("replay_bfloat16").at("acc").value = -0.009; }),
              HasSubstr("/workloads/1/deltas/replay_bfloat16/acc/value: found -0.009, expected -0.01"));
}

TEST(Consistency, TheTwoFormsOfAPerplexityDeltaSayTheSame) {
  // Narrowed by hand until a gate lets it through.
  EXPECT_THAT(fault_after([](Results& r) { delta(r, names::perplexity_ratio).high = 0.0131; }),
              HasSubstr("/deltas/replay_bfloat16/perplexity_relative/high: found 0.0131, expected 0.015"));
}

TEST(Consistency, TheFirstIntervalReachesAsFarAsStudentsT) {
  const auto narrowed = [](Results& r) {
    Delta& first = delta(r, names::delta_log_likelihood);
    const Delta& second = delta(r, names::delta_log_likelihood_t);
    first.method = "paired studentised bootstrap and t (2000 samples) over 96 documents";
    first.low = (*second.low + first.value) / 2.0;
    first.high = *second.high;
    delta(r, names::perplexity_ratio).high = std::expm1(-*first.low);
    delta(r, names::perplexity_ratio).low = std::expm1(-*first.high);
  };
  EXPECT_THAT(fault_after(narrowed), AllOf(HasSubstr("/deltas/replay_bfloat16/mean_log_likelihood: the interval ["),
                                           HasSubstr("does not reach as far as that of mean_log_likelihood_t")));
  EXPECT_THAT(fault_after([](Results& r) { delta(r, names::delta_log_likelihood).confidence = 0.5; }),
              HasSubstr("confidence and units are not those of mean_log_likelihood_t"));
}

TEST(Consistency, APValueAndItsIntervalRejectTogether) {
  EXPECT_THAT(fault_after([](Results& r) { delta(r, names::delta_log_likelihood_t).p_value = 0.3; }),
              HasSubstr("p-value 0.3 and the interval"));
}

Metric& divergence(Results& results, const char* name) {
  return heldout(results).divergence.at("replay_bfloat16").at(name);
}

TEST(Consistency, DivergencesAreWhatTheyCanBe) {
  EXPECT_THAT(fault_after([](Results& r) { divergence(r, names::same_top1).value = 1.5; }),
              HasSubstr("/divergence/replay_bfloat16/same_top1: found 1.5, expected a share from 0 to 1"));
  EXPECT_THAT(fault_after([](Results& r) { divergence(r, names::tie_share).value = -0.1; }),
              HasSubstr("/tie_share: found -0.1, expected a share from 0 to 1"));
  EXPECT_THAT(fault_after([](Results& r) {
                divergence(r, names::kl_mean) = {0.9, 0.8, 1.0, 24000};
              }),
              HasSubstr("/divergence/replay_bfloat16/kl_mean: found 0.9, above kl_max, 0.45"));
  EXPECT_THAT(fault_after([](Results& r) {
                divergence(r, names::kl_mean) = {-1e-6, -2e-6, 0.0, 24000};
              }),
              HasSubstr("/divergence/replay_bfloat16/kl_mean: found -1e-06, expected 0 or more"));
  EXPECT_THAT(fault_after([](Results& r) { divergence(r, names::dp_rms).n = 23999; }),
              HasSubstr("/divergence/replay_bfloat16/dp_rms/n: found 23999, expected 24000, the tokens scored"));
}

TEST(Consistency, StoredComparisonsAreCheckedAlike) {
  const auto with_row = [](Results& r) -> StoredComparison& {
    const Workload& workload = heldout(r);
    heldout(r).against = {{"replay_bfloat16", "replay_bfloat16", workload.deltas.at("replay_bfloat16"),
                           workload.divergence.at("replay_bfloat16")}};
    return heldout(r).against.front();
  };
  EXPECT_EQ(fault_after([&](Results& r) { with_row(r); }), "consistent");
  EXPECT_THAT(fault_after([&](Results& r) { with_row(r).deltas.at(names::delta_log_likelihood).high = -0.5; }),
              HasSubstr("/workloads/0/against/0/deltas/mean_log_likelihood: value"));
  EXPECT_THAT(fault_after([&](Results& r) { with_row(r).deltas.at(names::perplexity_ratio).high = 0.0131; }),
              HasSubstr("/against/0/deltas/perplexity_relative/high: found 0.0131, expected 0.015"));
  EXPECT_THAT(fault_after([&](Results& r) { with_row(r).divergence.at(names::kl_mean).low = 1.0; }),
              HasSubstr("/against/0/divergence/kl_mean: value"));
  EXPECT_THAT(fault_after([&](Results& r) { with_row(r).divergence.at(names::same_top1).value = 2.0; }),
              HasSubstr("/against/0/divergence/same_top1: found 2"));
}

TEST(Consistency, CountsFit) {
  EXPECT_THAT(fault_after([](Results& r) { r.workloads.at(1).data["documents"] = 999; }),
              HasSubstr("/metrics/acc/n: found 1000, expected 999, the task's documents"));
  EXPECT_THAT(fault_after([](Results& r) { heldout(r).arms.at("exact_bfloat16").metrics.at("perplexity").n = 24001; }),
              HasSubstr("found 24000, expected 24001 as of arm 'exact_bfloat16'"));
  EXPECT_THAT(fault_after([](Results& r) { heldout(r).data["tokens_scored"] = 9; }),
              HasSubstr("/workloads/0/data/tokens_scored: found 9, expected 24000"));
  EXPECT_THAT(
      fault_after([](Results& r) { r.workloads.at(1).data["answers"]["replay_bfloat16"]["acc"]["both_wrong"] = 5000; }),
      HasSubstr("/workloads/1/data/answers/replay_bfloat16/acc"));
  EXPECT_THAT(fault_after([](Results& r) { r.task_families.at(0).n = 1501; }),
              HasSubstr("/task_families/0/n: found 1501, expected 1500, the tasks' sum"));
  EXPECT_THAT(fault_after([](Results& r) { r.task_families.at(0).gained = 50; }),
              HasSubstr("gained minus lost over n"));
}

TEST(Consistency, QuantilesAscend) {
  EXPECT_THAT(fault_after([](Results& r) { heldout(r).divergence.at("exact_bfloat16").at("kl_max").value = 1e-9; }),
              HasSubstr("/divergence/exact_bfloat16/kl_max: found 1e-09, below the quantile before it"));
}

TEST(Consistency, TheBaselineUnderAnotherNameMovesByNothing) {
  EXPECT_THAT(fault_after([](Results& r) {
                auto& deltas = heldout(r).deltas.at("exact_float32_again");
                for (const char* name : {names::delta_log_likelihood, names::perplexity_ratio}) {
                  deltas.at(name).value = name == names::perplexity_ratio ? std::expm1(1e-12) : -1e-12;
                  deltas.at(name).low = deltas.at(name).high = deltas.at(name).value;
                }
              }),
              HasSubstr("expected exactly 0: the arm is the baseline under another name"));
}

TEST(Consistency, SpeedsAreOfTheTokensAndSecondsBesideThem) {
  EXPECT_THAT(fault_after([](Results& r) { heldout(r).arms.at("replay_bfloat16").tokens_per_second *= 1.1; }),
              HasSubstr("/workloads/0/arms/replay_bfloat16/tokens_per_second: found"));
  EXPECT_THAT(fault_after([](Results& r) { heldout(r).arms.at("replay_bfloat16").seconds *= 0.9; }),
              HasSubstr("/workloads/0/arms/replay_bfloat16/seconds: found 4.5, expected 5"));
}

TEST(Consistency, BucketsLieSideBySideAndHoldTheirPerplexities) {
  EXPECT_THAT(fault_after([](Results& r) { heldout(r).positions.at(1).begin = 100; }),
              HasSubstr("/workloads/0/positions/1: [100, 512) does not lie behind 256"));
  EXPECT_THAT(fault_after([](Results& r) { heldout(r).positions.at(0).perplexity.at("exact_bfloat16").value = 3.0; }),
              HasSubstr("(of the two perplexities)"));
}

}  // namespace
}  // namespace replayeval::reports
