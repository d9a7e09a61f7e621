// One batch of windows through the model under all arms, scored against the baseline.
#pragma once

#include <vector>

#include "datasets/windows.h"
#include "eval/comparator/baseline/hidden_rows.h"
#include "eval/comparator/baseline/stored_baseline.h"
#include "eval/comparator/perplexity.h"
#include "eval/comparator/token_records.h"

namespace replayeval {

class PerplexityPass {
 public:
  // Decodes `block` tokens per call in teacher-forced mode. `documents`: the windows' own, for messages; may grow. All
  // three outlive the pass. `stored`: what the context's stored baseline keeps of the workload, where it has one.
  PerplexityPass(const RunContext& context, const WorkloadConfig& workload,
                 const std::vector<datasets::DocumentInfo>& documents,
                 std::shared_ptr<const StoredWorkload> stored = nullptr);

  // Windows of one length. Sequences start empty: state, convolution, ring and KV are reset first. The workload's
  // prefill_tokens, if any, are then computed as servers compute prompts and only the others go through the arms.
  Shard run(const std::vector<datasets::Window>& windows);
  // Of the last run's tokens, in the shard's order, what the context's keeper keeps.
  const HiddenRows& kept() const { return kept_; }

  // Pairs whose whole distributions are compared: 0 without stored hidden states.
  std::size_t pairs() const { return pairs_.size(); }

 private:
  struct Scores {
    metrics::DivergenceAccumulator arms;
    std::vector<metrics::DivergenceAccumulator> pairs;  // each of a stored arm and the run's
    std::size_t begun = 0;                              // the first token of what was begun last
  };

  Scores make_scores() const;
  void score(const at::Tensor& hidden, const std::vector<datasets::Window>& windows, std::int64_t begin, Scores& scores,
             Shard& shard, KernelClock& clock);
  // hidden: [arms, tokens, hidden_size] of the tokens that are recorded from `first_token` on. Returns the logits of
  // the arms, then of the stored ones.
  at::Tensor logits_of(const at::Tensor& hidden, std::size_t first_token, const TokenRecords& tokens,
                       KernelClock& clock) const;
  // Scores are waited for when the next ones' logits are on their way: a GPU is never idle for the host's sake.
  void begin(const at::Tensor& logits, std::size_t first_token, Scores& scores, const TokenRecords& tokens,
             KernelClock& clock) const;
  void finish(Scores& scores, const TokenRecords& tokens) const;
  // f(), whose errors get the place of `token` before them.
  void at_token(std::size_t token, const TokenRecords& tokens, const std::function<void()>& f) const;
  DecodeCache& cache_for(std::int64_t slots);
  void prefill(const at::Tensor& ids, DecodeCache& cache, KernelClock& clock);

  const RunContext& context_;
  const WorkloadConfig& workload_;
  const std::vector<datasets::DocumentInfo>& documents_;
  std::shared_ptr<const StoredWorkload> stored_;
  std::vector<StoredPair> pairs_;
  HiddenRows kept_;
  std::int64_t rows_per_chunk_ = 0;  // so that the logits of all arms stay within a fixed memory
  std::unique_ptr<DecodeCache> cache_, prompts_;
};

}  // namespace replayeval
