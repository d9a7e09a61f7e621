// Per-token divergence of arms from the baseline, over the full vocabulary, from float32 logits.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "eval/metrics/row_divergence.h"
#include "eval/metrics/statistics.h"
#include "kernels/types.h"

namespace replayeval::metrics {

// One entry per scored token, in the order given.
struct TokenDivergence {
  std::vector<double> log_prob;         // of the target under this arm, nats
  std::vector<float> kl;                // KL(baseline || arm) over the full vocabulary, nats; >= 0, 0 for equal logits
  std::vector<float> delta_p;           // p_arm(target) - p_baseline(target)
  std::vector<std::int32_t> rank;       // of the target under this arm: 1 + how many logits are larger
  std::vector<std::uint8_t> same_top1;  // the largest logit is at the same token (the lowest id among equals)
  std::vector<std::uint8_t> tie;        // this arm's two largest logits lie within the tie tolerance

  std::size_t size() const { return log_prob.size(); }
};

// Collects per-token arrays of all arms, the baseline included (its kl and delta_p are 0). Memory: 26 bytes per token
// and arm, plus a bounded work buffer; logits are not kept.
class DivergenceAccumulator {
 public:
  // Two logits tie when they differ by at most one spacing (unit in the last place) of `logit_dtype`, the type that the
  // logits were computed in, at the larger one's magnitude.
  DivergenceAccumulator(std::vector<std::string> arms, std::size_t baseline, Dtype logit_dtype);

  // logits[arm]: float32 [rows, vocab], contiguous, all on one device (CPU or CUDA); targets: int64 [rows], any device.
  // Arms see the same operations on equally shaped buffers, so equal logits give equal bits. Throws
  // std::invalid_argument on wrong shapes or types and on a target outside the vocabulary, std::runtime_error on a
  // logit that is not finite, naming arm and row (counted from the first row ever added).
  void add(std::span<const at::Tensor> logits, const at::Tensor& targets);

  // logits: float32 [arms, rows, vocab].
  void add(const at::Tensor& logits, const at::Tensor& targets);

  // add() in two parts, for a host that has something else to do while a GPU scores: finish() waits, appends what
  // begin() was given and throws on a logit that is not finite; without a begin() it does nothing. begin() finishes
  // what was begun before.
  void begin(std::span<const at::Tensor> logits, const at::Tensor& targets);
  void finish();

  std::int64_t rows() const { return rows_; }
  const std::vector<std::string>& arms() const { return names_; }
  const TokenDivergence& tokens(std::size_t arm) const { return tokens_.at(arm); }

 private:
  std::vector<std::string> names_;
  std::function<std::vector<std::vector<RowScore>>()> begun_;  // waits for the scores
  std::size_t baseline_ = 0;
  Dtype logit_dtype_ = Dtype::float32;
  std::int64_t rows_ = 0;
  std::vector<TokenDivergence> tokens_;
};

// What reports show of one arm, by the names of results.json: kl_mean, kl_median, kl_p90, kl_p99, kl_p99.9, kl_max;
// dp_mean, dp_rms, dp_p1, dp_p5, dp_median, dp_p95, dp_p99; same_top1, tie_share; top1_changed_untied (share of tokens
// whose top-1 differs though neither side was tied). Over documents or blocks kl_mean and dp_mean carry the
// interval of studentised_mean(), same_top1 that of token_share(); the others carry none. Throws std::invalid_argument
// on empty or unequally long arrays.
std::map<std::string, Estimate> summary(const TokenDivergence& arm, const TokenDivergence& baseline,
                                        std::span<const std::int64_t> document, const IntervalOptions& options);

}  // namespace replayeval::metrics
