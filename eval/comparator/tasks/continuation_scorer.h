// Log-likelihoods of continuations under all arms at once: what loglikelihood, multiple-choice and rolling requests are
// made of.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "eval/comparator/storage_totals.h"
#include "eval/executors/kernel_clock.h"
#include "eval/model/model.h"

namespace replayeval {

struct Continuation {
  std::vector<std::int32_t> tokens;  // context, then continuation: at least two
  std::int64_t scored = 0;           // how many at the end are the continuation; 1 … tokens.size() - 1
};

struct ContinuationScore {
  double log_likelihood = 0.0;   // sum over the scored tokens, nats
  bool greedy = false;           // every scored token has the largest logit (the lowest id among equals)
  std::vector<float> log_probs;  // of the scored tokens
};

struct ScorerOptions {
  Mode mode = Mode::teacher_forced;
  // Contexts but for their last token are computed as servers compute prompts; otherwise every token goes through the
  // arms.
  bool prefill = false;
  std::int64_t block = 256;         // tokens of a sequence per teacher-forced call
  std::int64_t call_tokens = 2048;  // of all sequences of such a call, padding included (one sequence at least)
};

// What scoring took, over all run() calls.
struct ScorerCosts {
  std::int64_t decoded_tokens = 0;  // that went through each arm, without padding
  StorageTotals storage_counts;     // padding's tokens are among them
};

class ContinuationScorer {
 public:
  // `model` outlives the scorer.
  ContinuationScorer(const Model& model, std::vector<Arm> arms, ScorerOptions options);

  // [requests][arms]. Requests that are equal are scored once, so that their scores are equal to the bit. `progress` is
  // told of distinct requests as they are done. Throws std::invalid_argument naming the request on one that is too
  // short or longer than the model's positions + 1, std::runtime_error on logits that are not finite,
  // Interrupted between blocks when asked to stop.
  std::vector<std::vector<ContinuationScore>> run(std::span<const Continuation> requests,
                                                  const std::function<void(std::int64_t)>& progress,
                                                  KernelClock* clock = nullptr);

  const ScorerCosts& costs() const { return costs_; }

 private:
  std::vector<std::vector<ContinuationScore>> run_batch(const std::vector<const Continuation*>& batch,
                                                        KernelClock* clock);
  void add_costs(const std::vector<const Continuation*>& batch, const std::vector<std::int64_t>& begins,
                 const DecodeCache& cache);
  void prefill(const std::vector<const Continuation*>& batch, DecodeCache& cache, KernelClock* clock) const;
  void score_block(const std::vector<const Continuation*>& batch, const at::Tensor& hidden,
                   const std::vector<std::int64_t>& begins, std::vector<std::vector<ContinuationScore>>& scores,
                   KernelClock* clock) const;

  const Model& model_;
  std::vector<Arm> arms_;
  ScorerOptions options_;
  ScorerCosts costs_;
};

}  // namespace replayeval
