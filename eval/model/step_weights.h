// What a decode step reads of a model's weights.
#pragma once

#include "eval/model/footprint.h"
#include "eval/model/model.h"

namespace replayeval {

inline StepWeights step_weights(const WeightTotals& totals, std::int64_t vocab_size) {
  StepWeights step;
  for (const std::int64_t bytes : totals.layer_bytes) step.dense += bytes;
  step.dense += totals.head_bytes + (totals.tied_head ? totals.embedding_bytes : 0) - totals.expert_bytes;
  step.experts = totals.expert_bytes;
  step.embedding_row = totals.embedding_bytes / vocab_size;
  return step;
}

}  // namespace replayeval
