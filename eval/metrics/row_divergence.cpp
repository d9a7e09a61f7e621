#include "eval/metrics/row_divergence.h"

#include <omp.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "eval/metrics/logit_spacing.h"
#include "eval/metrics/row_sweeps.h"

namespace replayeval::metrics {
namespace {

std::size_t first_place_of(const float* logits, std::size_t vocab, double value) {
  return static_cast<std::size_t>(std::find(logits, logits + vocab, static_cast<float>(value)) - logits);
}

RowScore flawed(const float* logits, std::size_t vocab) {
  RowScore score;
  const float* const flaw = std::find_if(logits, logits + vocab, [](float logit) { return !std::isfinite(logit); });
  score.flaw = flaw - logits;
  score.flawed_logit = *flaw;
  return score;
}

// exp(-c) of form (2) must stay finite with room for the sum over a vocabulary.
constexpr double largest_exponent = 600.0;

}  // namespace

double probability_difference(double arm_log_prob, double baseline_log_prob) {
  const double ratio = arm_log_prob - baseline_log_prob;
  return std::abs(ratio) < 1.0 ? std::exp(baseline_log_prob) * std::expm1(ratio)
                               : std::exp(arm_log_prob) - std::exp(baseline_log_prob);
}

RowScorer::RowScorer(std::int64_t vocab, Dtype logit_dtype)
    : vocab_(static_cast<std::size_t>(vocab)),
      logit_dtype_(logit_dtype),
      exponentials_(vocab_ + sweeps::padding, 0.0) {}

RowScore RowScorer::score_alone(const float* logits, std::int64_t target, double max, double second, double sum) const {
  RowScore score;
  score.finite = true;
  const float at_target = logits[target];
  score.log_prob = (static_cast<double>(at_target) - max) - std::log(sum);
  score.rank = 1 + static_cast<std::int32_t>(
                       std::count_if(logits, logits + vocab_, [at_target](float logit) { return logit > at_target; }));
  score.tie = max - second <= spacing(max, logit_dtype_);
  return score;
}

RowScore RowScorer::score_baseline(const float* logits, std::int64_t target) {
  const sweeps::Extremes extremes = sweeps::extremes(logits, vocab_);
  if (!extremes.finite) return flawed(logits, vocab_);
  baseline_ = logits;
  min_ = extremes.min;
  max_ = extremes.max;
  top1_ = first_place_of(logits, vocab_, max_);
  sum_ = sweeps::exponentials(logits, vocab_, max_, exponentials_.data());
  RowScore score = score_alone(logits, target, max_, extremes.second, sum_);
  log_prob_ = score.log_prob;
  score.same_top1 = true;
  return score;
}

RowScore RowScorer::score_arm(const float* logits, std::int64_t target) const {
  const sweeps::Extremes extremes = sweeps::extremes(logits, vocab_);
  if (!extremes.finite) return flawed(logits, vocab_);
  const double sum = sweeps::sum_of_exponentials(logits, vocab_, extremes.max);
  RowScore score = score_alone(logits, target, extremes.max, extremes.second, sum);
  score.same_top1 = first_place_of(logits, vocab_, extremes.max) == top1_;
  score.delta_p = probability_difference(score.log_prob, log_prob_);

  const double mu = sweeps::weighted_difference(exponentials_.data(), baseline_, logits, vocab_) / sum_;
  score.kl = mu - (max_ - extremes.max) - (std::log(sum_) - std::log(sum));
  if (score.kl < small_divergence && extremes.max - min_ + mu < largest_exponent)
    score.kl = std::log1p(sweeps::weighted_excess(exponentials_.data(), baseline_, logits, vocab_, mu) / sum_);
  score.kl = std::max(score.kl, 0.0);
  return score;
}

std::vector<std::vector<RowScore>> score_rows(std::span<const float* const> logits,
                                              std::span<const std::int64_t> targets, std::int64_t vocab,
                                              std::size_t baseline, Dtype logit_dtype) {
  const auto rows = static_cast<std::int64_t>(targets.size());
  std::vector<std::vector<RowScore>> scores(logits.size(), std::vector<RowScore>(targets.size()));
  std::vector<RowScorer> scorers(static_cast<std::size_t>(omp_get_max_threads()), RowScorer(vocab, logit_dtype));
#pragma omp parallel for schedule(static)
  for (std::int64_t r = 0; r < rows; ++r) {
    RowScorer& scorer = scorers[static_cast<std::size_t>(omp_get_thread_num())];
    const auto row = static_cast<std::size_t>(r);
    scores[baseline][row] = scorer.score_baseline(logits[baseline] + r * vocab, targets[row]);
    if (!scores[baseline][row].finite) continue;
    for (std::size_t arm = 0; arm < logits.size(); ++arm)
      if (arm != baseline) scores[arm][row] = scorer.score_arm(logits[arm] + r * vocab, targets[row]);
  }
  return scores;
}

}  // namespace replayeval::metrics
