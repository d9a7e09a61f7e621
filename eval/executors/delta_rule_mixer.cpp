#include "eval/executors/delta_rule_mixer.h"

#include <ATen/ATen.h>

#include <string>
#include <utility>

#include "eval/executors/delta_rule_gold.h"
#include "eval/executors/device.h"
#include "eval/executors/tensor_memory.h"

namespace replayeval {
namespace {

MixerSizes sizes_of(delta_rule::Family family, const delta_rule::Shape& shape) {
  const DeltaRuleWidths widths = delta_rule_widths(family, shape);
  MixerSizes sizes;
  sizes.num_heads = shape.num_value_heads;
  sizes.state_rows = shape.value_dim;
  sizes.state_columns = shape.key_dim;
  sizes.conv_dim = widths.q + widths.k + widths.v;
  sizes.gate_begin = sizes.conv_dim;
  sizes.projection = sizes.conv_dim + widths.z + widths.b + widths.f;
  return sizes;
}

delta_rule::Ring ring_of(const MixerCache& cache) {
  const std::vector<at::Tensor>& ring = cache.ring;
  return {ring[0].data_ptr(), ring[1].data_ptr(), ring[2].data_ptr<float>(),
          ring.size() > 3 ? ring[3].data_ptr<float>() : nullptr, cache.cursor.const_data_ptr<std::int32_t>()};
}

delta_rule::ReplayForm form_of(const Arm& arm) {
  return {arm.replay.buffer_len, arm.ring_form, arm.replay.route, arm.replay.flush, arm.replay.ring_dtype};
}

}  // namespace

DeltaRuleWidths delta_rule_widths(delta_rule::Family family, const delta_rule::Shape& shape) {
  const std::int64_t key = shape.num_key_heads * shape.key_dim, value = shape.num_value_heads * shape.value_dim;
  return {key, key, value, value, shape.num_value_heads, shape.num_value_heads * delta_rule::gate_dim(family, shape)};
}

DeltaRuleMixer::DeltaRuleMixer(delta_rule::Family family, const delta_rule::Shape& shape, MixerConv conv,
                               MixerNorm norm, DeltaRuleWeights weights)
    : Mixer(sizes_of(family, shape), std::move(conv), std::move(norm)),
      family_(family),
      shape_(shape),
      weights_(std::move(weights)) {}

const std::string& DeltaRuleMixer::family() const {
  static const std::string gated_delta = "gated_delta", kda = "kda";
  return family_ == delta_rule::Family::kda ? kda : gated_delta;
}

delta_rule::Parameters DeltaRuleMixer::parameters() const {
  return {floats(weights_.A_log), floats(weights_.dt_bias), weights_.allow_neg_eigval, weights_.numerics,
          weights_.gate,          weights_.lower_bound};
}

std::unique_ptr<GoldRecurrence> DeltaRuleMixer::gold() const { return std::make_unique<DeltaRuleGold>(*this); }

std::vector<at::Tensor> DeltaRuleMixer::make_ring(const Arm& arm, std::int64_t slots, const at::Device& device) const {
  const std::int64_t heads = shape_.num_value_heads, buffer_len = arm.replay.buffer_len;
  const auto wide = at::TensorOptions().device(device).dtype(at::kFloat);
  const auto stored = wide.dtype(scalar_type(arm.replay.ring_dtype));
  std::vector<at::Tensor> ring = {at::zeros({slots, heads, buffer_len, shape_.value_dim}, stored),
                                  at::zeros({slots, shape_.num_key_heads, buffer_len, shape_.key_dim}, stored),
                                  at::zeros({slots, heads, buffer_len, delta_rule::gate_dim(family_, shape_)}, wide)};
  if (arm.ring_form == RingForm::inputs) ring.push_back(at::zeros({slots, heads, buffer_len}, wide));
  return ring;
}

void DeltaRuleMixer::run_recurrence(const Call& call) const {
  const DeltaRuleWidths widths = delta_rule_widths(family_, shape_);
  const std::int64_t b_begin = sizes().gate_begin + widths.z;
  delta_rule::Inputs inputs;
  inputs.q = at_element(call.conv);
  inputs.k = at_element(call.conv, widths.q);
  inputs.v = at_element(call.conv, widths.q + widths.k);
  inputs.b = at_element(call.projected, b_begin);
  inputs.f = at_element(call.projected, b_begin + widths.b);
  inputs.q_stride = inputs.k_stride = inputs.v_stride = sizes().conv_dim;
  inputs.b_stride = inputs.f_stride = sizes().projection;
  inputs.dtype = kernel_dtype(call.conv.scalar_type());
  const Output output{call.y.data_ptr(), sizes().inner(), kernel_dtype(call.y.scalar_type())};
  const State state = state_of(call.arm, call.cache);
  if (call.arm.executor == Executor::exact)
    delta_rule::exact(call.device, family_, shape_, call.block, inputs, parameters(), state, output);
  else
    delta_rule::replay(call.device, family_, shape_, form_of(call.arm), call.block, inputs, parameters(), state,
                       ring_of(call.cache), output);
}

void DeltaRuleMixer::reconstruct(const Arm& arm, const MixerCache& cache, const Device& device,
                                 const DecodeBlock& block, float* state) const {
  delta_rule::reconstruct(device, family_, shape_, form_of(arm), block, state_of(arm, cache), ring_of(cache), state);
}

}  // namespace replayeval
