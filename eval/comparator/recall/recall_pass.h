// Synthetic recall documents through the model under all arms: which answers each arm has right.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "datasets/recall/recall_item.h"
#include "eval/comparator/perplexity.h"
#include "eval/comparator/storage_totals.h"
#include "eval/executors/kernel_clock.h"

namespace replayeval {

// One batch of documents.
class RecallPass {
 public:
  RecallPass(const RunContext& context, const WorkloadConfig& workload) : context_(context), workload_(workload) {}

  // Once: items of one length. Returns [arms][answers], the items' answers one after the other: 1 where every token of
  // the answer has the largest logit. Throws std::runtime_error naming the item where logits are not finite,
  // Interrupted between blocks when asked to stop.
  std::vector<std::vector<std::uint8_t>> run(const std::vector<datasets::RecallItem>& items, KernelClock& clock);

  std::int64_t decoded_tokens() const { return decoded_; }
  StorageTotals storage_counts() const;

 private:
  struct Answers;

  void decode_together(const std::vector<datasets::RecallItem>& items, Answers& answers, KernelClock& clock);
  void decode_after_prefill(const std::vector<datasets::RecallItem>& items, Answers& answers, KernelClock& clock);
  void look_at(const at::Tensor& hidden, const std::vector<datasets::RecallItem>& items, std::size_t first_item,
               std::int64_t begin, Answers& answers, KernelClock& clock) const;
  DecodeCache& new_cache(std::int64_t slots, std::int64_t capacity);

  const RunContext& context_;
  const WorkloadConfig& workload_;
  std::unique_ptr<DecodeCache> cache_;
  std::int64_t decoded_ = 0;
};

}  // namespace replayeval
