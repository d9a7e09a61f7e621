// One batch of windows through the model under all arms, scored against the baseline.
#pragma once

#include <vector>

#include "datasets/windows.h"
#include "eval/comparator/perplexity.h"
#include "eval/comparator/token_records.h"

namespace replayeval {

class PerplexityPass {
 public:
  // Decodes `block` tokens per call in teacher-forced mode. `documents`: the windows' own, for messages; may grow. All
  // three outlive the pass.
  PerplexityPass(const RunContext& context, const WorkloadConfig& workload,
                 const std::vector<datasets::DocumentInfo>& documents);

  // Windows of one length. Sequences start empty: state, convolution, ring and KV are reset first. The workload's
  // prefill_tokens, if any, are then computed as servers compute prompts and only the others go through the arms.
  Shard run(const std::vector<datasets::Window>& windows);

 private:
  void score(const at::Tensor& hidden, const std::vector<datasets::Window>& windows, std::int64_t begin,
             metrics::DivergenceAccumulator& scores, Shard& shard, KernelClock& clock) const;
  DecodeCache& cache_for(std::int64_t slots);
  void prefill(const at::Tensor& ids, DecodeCache& cache, KernelClock& clock);

  const RunContext& context_;
  const WorkloadConfig& workload_;
  const std::vector<datasets::DocumentInfo>& documents_;
  std::int64_t rows_per_chunk_ = 0;  // so that the logits of all arms stay within a fixed memory
  std::unique_ptr<DecodeCache> cache_, prompts_;
};

}  // namespace replayeval
