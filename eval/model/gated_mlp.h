// down(act(gate x) * up x), the MLP of most architectures.
#pragma once

#include <ATen/core/Tensor.h>

#include "eval/model/activation.h"
#include "eval/model/blocks.h"
#include "eval/model/layers.h"

namespace replayeval {

struct GatedMlpWeights {
  Linear gate_proj, up_proj, down_proj;
};

struct GatedMlpForm {
  Activation activation = Activation::silu;
  double gate_multiplier = 1.0;  // inside the activation
  double down_multiplier = 1.0;  // on the output
};

class GatedMlpBlock : public Block {
 public:
  GatedMlpBlock(GatedMlpWeights weights, GatedMlpForm form) : weights_(std::move(weights)), form_(form) {}
  at::Tensor run(const at::Tensor& x, const Step& step) const override;

 private:
  GatedMlpWeights weights_;
  GatedMlpForm form_;
};

// act(gate) * up. gate, up: [arms, rows, width] of one type.
at::Tensor gated(const at::Tensor& gate, const at::Tensor& up, Activation activation);

}  // namespace replayeval
