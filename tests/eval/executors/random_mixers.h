// Mixers of each family with random weights and random inputs for them, of widths that are no multiples of 32.
#pragma once

#include <ATen/ATen.h>

#include <limits>

#include "eval/executors/delta_rule_mixer.h"
#include "eval/executors/mamba2_mixer.h"

namespace replayeval::testing {

inline at::Tensor random_tensor(std::initializer_list<std::int64_t> shape, const at::Device& device,
                                double scale = 1.0) {
  return at::randn(at::IntArrayRef(shape)).mul(scale).to(device);
}

// 6 heads of 24 in 3 groups, state size 40.
inline std::unique_ptr<Mamba2Mixer> random_mamba2(const at::Device& device) {
  const mamba2::Shape shape{6, 3, 24, 40};
  const MixerSizes sizes = mamba2_sizes(shape);
  MixerConv conv{4, random_tensor({sizes.conv_dim, 4}, device, 0.5), random_tensor({sizes.conv_dim}, device, 0.2)};
  MixerNorm norm;
  norm.weight = random_tensor({sizes.inner()}, device);
  norm.group_size = sizes.inner() / 3;
  Mamba2Weights weights{random_tensor({6}, device), random_tensor({6}, device), random_tensor({6}, device).sub(1.0),
                        0.0F, std::numeric_limits<float>::infinity()};
  return std::make_unique<Mamba2Mixer>(shape, std::move(conv), std::move(norm), std::move(weights));
}

// 3 key heads of 40, 6 value heads of 24; with Kimi Delta Attention 6 key heads and a sigmoid gate.
inline std::unique_ptr<DeltaRuleMixer> random_delta_rule(delta_rule::Family family, const at::Device& device) {
  const bool kda = family == delta_rule::Family::kda;
  const delta_rule::Shape shape{kda ? 6 : 3, 6, 40, 24};
  const std::int64_t channels = 2 * shape.num_key_heads * 40 + 6 * 24;
  MixerConv conv{4, random_tensor({channels, 4}, device, 0.5), {}};
  MixerNorm norm;
  norm.form = GateForm::norm_then_gate;
  norm.activation = kda ? GateActivation::sigmoid : GateActivation::silu;
  norm.weight = random_tensor({24}, device).repeat({6});
  norm.group_size = 24;
  norm.eps = 1e-6F;
  DeltaRuleWeights weights;
  weights.A_log = random_tensor({6}, device);
  weights.dt_bias = random_tensor({6, delta_rule::gate_dim(family, shape)}, device).sub(1.0);
  return std::make_unique<DeltaRuleMixer>(family, shape, std::move(conv), std::move(norm), std::move(weights));
}

inline at::Tensor random_projected(const Mixer& mixer, std::int64_t batch, std::int64_t tokens, at::ScalarType type) {
  return at::randn({batch, tokens, mixer.sizes().projection}).to(mixer.device(), type);
}

}  // namespace replayeval::testing
