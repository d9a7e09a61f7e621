// Attention with RMS norms on queries and keys, and, in some models, a gate on its output.
#pragma once

#include "eval/model/blocks.h"

namespace replayeval {

struct NormedAttentionWeights {
  // With `gated` q_proj is twice as wide: of every head first the query, then the gate.
  Linear q_proj, k_proj, v_proj, o_proj;
  // Over a head, or over all of them: as wide as their weights.
  Norm q_norm, k_norm;
  bool gated = false;  // out = o_proj(attention * sigmoid(gate))
};

class NormedAttentionBlock : public Block {
 public:
  // `index` counts the model's attention caches from 0.
  NormedAttentionBlock(NormedAttentionWeights weights, AttentionForm form, std::size_t index)
      : weights_(std::move(weights)), form_(std::move(form)), index_(index) {}
  at::Tensor run(const at::Tensor& x, const Step& step) const override;

 private:
  NormedAttentionWeights weights_;
  AttentionForm form_;
  std::size_t index_;
};

}  // namespace replayeval
