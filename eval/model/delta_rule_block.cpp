#include "eval/model/delta_rule_block.h"

#include <ATen/ATen.h>

#include <utility>
#include <vector>

namespace replayeval {

at::Tensor DeltaRuleBlock::run(const at::Tensor& x, const Step& step) const {
  at::Tensor projected = timed_linear(x, dense_.in_proj, step);
  if (dense_.z_proj.weight.defined() || dense_.f_proj.weight.defined()) projected = expand(projected, step);
  return mix_arms(projected, *mixer_, index_, dense_.out_proj, step);
}

at::Tensor DeltaRuleBlock::expand(const at::Tensor& projected, const Step& step) const {
  const DeltaRuleWidths widths = delta_rule_widths(mixer_->family_kind(), mixer_->shape());
  const auto narrow_width = [](const Linear& layer, std::int64_t whole) {
    return layer.weight.defined() ? layer.weight.size(1) : whole;
  };
  const std::int64_t qkv = widths.q + widths.k + widths.v, z = narrow_width(dense_.z_proj, widths.z);
  const auto part = [&](std::int64_t begin, std::int64_t width, const Linear& layer) {
    const at::Tensor narrow = projected.narrow(-1, begin, width);
    return layer.weight.defined() ? timed_linear(narrow, layer, step) : narrow;
  };
  return at::cat({projected.narrow(-1, 0, qkv), part(qkv, z, dense_.z_proj), projected.narrow(-1, qkv + z, widths.b),
                  part(qkv + z + widths.b, narrow_width(dense_.f_proj, widths.f), dense_.f_proj)},
                 -1);
}

MixerConv load_delta_conv(HybridBuilder& builder, const std::string& name) {
  const std::int64_t channels = builder.architecture().conv_dim(), taps = builder.architecture().conv_kernel;
  if (builder.weights().has(name + ".conv1d.weight")) return builder.conv(name + ".conv1d", channels, false);
  const std::vector<std::string> names = {name + ".q_conv1d.weight", name + ".k_conv1d.weight",
                                          name + ".v_conv1d.weight"};
  MixerConv conv;
  conv.conv_kernel = taps;
  conv.weight = builder.weights().load_joined(names, {channels, 1, taps}, at::kFloat).squeeze(1);
  return conv;
}

MixerNorm delta_rule_norm(const delta_rule::Shape& shape, const at::Tensor& weight, GateActivation activation,
                          double eps) {
  MixerNorm norm;
  norm.form = GateForm::norm_then_gate;
  norm.activation = activation;
  norm.weight = weight.repeat({shape.num_value_heads});
  norm.group_size = shape.value_dim;
  norm.eps = static_cast<float>(eps);
  return norm;
}

std::unique_ptr<Block> add_delta_rule(HybridBuilder& builder, DeltaRuleDense dense, MixerConv conv, MixerNorm norm,
                                      DeltaRuleWeights weights) {
  const Architecture& architecture = builder.architecture();
  auto mixer = std::make_shared<const DeltaRuleMixer>(architecture.delta_family(), architecture.delta, std::move(conv),
                                                      std::move(norm), std::move(weights));
  const std::size_t index = builder.add_mixer(mixer);
  return std::make_unique<DeltaRuleBlock>(std::move(dense), std::move(mixer), index);
}

Linear stacked(const std::vector<Linear>& parts) {
  std::vector<at::Tensor> weights, biases;
  for (const Linear& part : parts) {
    weights.push_back(part.weight);
    if (part.bias.defined()) biases.push_back(part.bias);
  }
  return {at::cat(weights), biases.empty() ? at::Tensor() : at::cat(biases)};
}

}  // namespace replayeval
