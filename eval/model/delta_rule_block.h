// A mixer of the gated delta rule with its projections, as a block.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "eval/executors/delta_rule_mixer.h"
#include "eval/model/hybrid_builder.h"

namespace replayeval {

struct DeltaRuleDense {
  // To q | k | v | z | b | f. Where z or f goes through fewer channels first, in_proj ends in those, at z's or f's
  // place, and z_proj or f_proj makes the whole of them; both are undefined otherwise.
  Linear in_proj;
  Linear z_proj, f_proj;
  Linear out_proj;
};

class DeltaRuleBlock : public Block {
 public:
  // `index` counts the model's mixers from 0.
  DeltaRuleBlock(DeltaRuleDense dense, std::shared_ptr<const DeltaRuleMixer> mixer, std::size_t index)
      : dense_(std::move(dense)), mixer_(std::move(mixer)), index_(index) {}
  at::Tensor run(const at::Tensor& x, const Step& step) const override;

 private:
  at::Tensor expand(const at::Tensor& projected, const Step& step) const;

  DeltaRuleDense dense_;
  std::shared_ptr<const DeltaRuleMixer> mixer_;
  std::size_t index_;
};

// The convolution of q | k | v, without bias: `name`.conv1d, or `name`.q_conv1d, k_conv1d and v_conv1d, as published.
// transformers cuts these three into equal parts when it saves, however wide q, k and v are; only their sum matters.
MixerConv load_delta_conv(HybridBuilder& builder, const std::string& name);

// The output's norm, one weight [value_dim] for every head: norm(y) * act(z).
MixerNorm delta_rule_norm(const delta_rule::Shape& shape, const at::Tensor& weight, GateActivation activation,
                          double eps);

// Registers the mixer with the builder; family and shape are those of its architecture.
std::unique_ptr<Block> add_delta_rule(HybridBuilder& builder, DeltaRuleDense dense, MixerConv conv, MixerNorm norm,
                                      DeltaRuleWeights weights);

// The rows of several projections of the same input as one: [out_1 + out_2 + ..., in].
Linear stacked(const std::vector<Linear>& parts);

}  // namespace replayeval
