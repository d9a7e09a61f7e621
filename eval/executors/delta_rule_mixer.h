// The mixer of the gated delta rule, of either family (Gated DeltaNet, Kimi Delta Attention). Its input is
// q | k | v | z | b | f, of which q | k | v go through the convolution; z is the output's gate.
#pragma once

#include "eval/executors/mixer.h"
#include "kernels/delta_rule/delta_rule.h"

namespace replayeval {

struct DeltaRuleWeights {
  at::Tensor A_log;    // [num_value_heads] float32
  at::Tensor dt_bias;  // [num_value_heads, gate_dim] float32
  bool allow_neg_eigval = false;
  delta_rule::Numerics numerics;
  delta_rule::Gate gate = delta_rule::Gate::softplus;
  float lower_bound = -5.0F;  // of the bounded gate
};

class DeltaRuleMixer final : public Mixer {
 public:
  // Tensors on one device.
  DeltaRuleMixer(delta_rule::Family family, const delta_rule::Shape& shape, MixerConv conv, MixerNorm norm,
                 DeltaRuleWeights weights);

  const std::string& family() const override;
  delta_rule::Family family_kind() const { return family_; }
  const delta_rule::Shape& shape() const { return shape_; }
  const DeltaRuleWeights& weights() const { return weights_; }
  std::unique_ptr<GoldRecurrence> gold() const override;

 private:
  // The ring: values, k, log-decay, and beta with ring_form inputs.
  std::vector<at::Tensor> make_ring(const Arm& arm, std::int64_t slots, const at::Device& device) const override;
  void run_recurrence(const Call& call) const override;
  void reconstruct(const Arm& arm, const MixerCache& cache, const Device& device, const DecodeBlock& block,
                   float* state) const override;
  delta_rule::Parameters parameters() const;

  delta_rule::Family family_;
  delta_rule::Shape shape_;
  DeltaRuleWeights weights_;
};

// Widths in the mixer's input.
struct DeltaRuleWidths {
  std::int64_t q = 0, k = 0, v = 0, z = 0, b = 0, f = 0;
};
DeltaRuleWidths delta_rule_widths(delta_rule::Family family, const delta_rule::Shape& shape);

}  // namespace replayeval
