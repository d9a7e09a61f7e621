// Divergence of one token's logits from the baseline's, on the CPU: a few vectorised sweeps in float64 over a row that
// stays in the cache. Plain C++; divergence.h is what evaluations use.
//
// With baseline logits z, arm logits w, d = z - w, p = softmax(z), mu = E_p[d] and c = d - mu,
//   KL(p || softmax(w)) = mu - lse(z) + lse(w)                          (1)
//                       = log(1 + E_p[exp(-c) - 1 + c])                 (2), as E_p[c] = 0.
// (1) loses everything below the rounding of lse; every term of (2) is non-negative and the whole is exact to second
// order in the rounding of mu, so it is used where (1) is small. Both are exactly 0 for equal logits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/types.h"

namespace replayeval::metrics {

struct RowScore {
  bool finite = false;    // all logits are; nothing else counts if not
  double log_prob = 0.0;  // of the target
  double kl = 0.0;        // KL(baseline || this row), >= 0
  double delta_p = 0.0;   // p(target) - p_baseline(target)
  std::int32_t rank = 0;  // 1 + how many logits exceed the target's
  bool same_top1 = false;
  bool tie = false;        // the two largest logits differ by at most one spacing of the logits' type
  std::int64_t flaw = -1;  // of a row that is not finite: its first logit that is not; -1: only the baseline's is not
  float flawed_logit = 0.0F;
};

// Below this, form (2) is used.
inline constexpr double small_divergence = 1e-2;

// p(target) of the arm minus the baseline's, from their logarithms, without cancellation where they are close.
double probability_difference(double arm_log_prob, double baseline_log_prob);

// Scores rows of `vocab` logits, one baseline row and then any number of arms against it. One per thread.
class RowScorer {
 public:
  RowScorer(std::int64_t vocab, Dtype logit_dtype);

  RowScore score_baseline(const float* logits, std::int64_t target);
  // After score_baseline() of the same token, whose logits must still be there and were finite.
  RowScore score_arm(const float* logits, std::int64_t target) const;

 private:
  RowScore score_alone(const float* logits, std::int64_t target, double max, double second, double sum) const;

  std::size_t vocab_ = 0;
  Dtype logit_dtype_ = Dtype::float32;
  const float* baseline_ = nullptr;
  std::vector<double> exponentials_;  // exp(z - max z), zero-padded to whole vectors
  double min_ = 0.0, max_ = 0.0, sum_ = 0.0, log_prob_ = 0.0;
  std::size_t top1_ = 0;
};

// logits[arm]: [rows, vocab], dense; targets: [rows], inside the vocabulary. scores[arm][row]; an arm's row that is not
// finite, or whose baseline is not, has finite == false. Rows are spread over the OpenMP threads, each one's from start
// to end, so the number of threads changes no bit.
std::vector<std::vector<RowScore>> score_rows(std::span<const float* const> logits,
                                              std::span<const std::int64_t> targets, std::int64_t vocab,
                                              std::size_t baseline, Dtype logit_dtype);

}  // namespace replayeval::metrics
