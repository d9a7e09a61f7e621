#include "eval/model/blocks.h"

#include <ATen/ATen.h>

namespace replayeval {

at::Tensor timed_linear(const at::Tensor& x, const Linear& layer, const Step& step) {
  const KernelClock::Scope scope(step.clock, "", "dense");
  return linear(x, layer);
}

at::Tensor mix_arms(const at::Tensor& projected, const Mixer& mixer, std::size_t index, const Linear& out_proj,
                    const Step& step) {
  const std::int64_t arms = projected.size(0);
  const at::Tensor inputs = projected.view({arms, step.batch, step.tokens, -1});
  const at::Tensor& slots = step.rows.places(step.tokens, projected.device()).mixer_slots;
  const at::Tensor outputs = at::empty({arms, step.batch, step.tokens, mixer.sizes().inner()}, projected.options());
  for (std::int64_t arm = 0; arm < arms; ++arm) {
    const at::Tensor input = inputs.select(0, arm);
    if (step.tap != nullptr) step.tap->on_mixer(static_cast<std::int64_t>(index), static_cast<std::size_t>(arm), input);
    MixerCache& cache = step.cache.of(arm).mixers[index];
    mixer.run(step.cache.arm(arm), cache, input, slots, step.clock, outputs.select(0, arm));
  }
  return timed_linear(outputs.view({arms, step.batch * step.tokens, -1}), out_proj, step);
}

at::Tensor MambaBlock::run(const at::Tensor& x, const Step& step) const {
  at::Tensor projected = timed_linear(x, weights_.in_proj, step);
  if (weights_.projection_multiplier.defined())
    projected = per_arm(projected, [this](const at::Tensor& part) {
      return part.mul(weights_.projection_multiplier.to(part.scalar_type()));
    });
  return mix_arms(projected, *mixer_, index_, weights_.out_proj, step);
}

at::Tensor attend_arms(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const AttentionForm& form,
                       std::size_t index, const Step& step) {
  const KernelClock::Scope scope(step.clock, "", "attention");
  const RowPlaces& places = step.rows.places(step.tokens, q.device());
  std::optional<Rotation> rotation;
  if (form.rotary) rotation = make_rotation(*form.rotary, places.positions.flatten(), q.scalar_type());
  std::vector<at::Tensor> outputs;
  for (std::int64_t arm = 0; arm < q.size(0); ++arm) {
    at::Tensor query = q.select(0, arm).view({-1, form.num_heads, form.head_dim});
    at::Tensor key = k.select(0, arm).view({-1, form.num_kv_heads, form.head_dim});
    if (form.key_multiplier != 1.0) key = key.mul(form.key_multiplier);
    if (rotation) {
      query = rotate(query, *rotation);
      key = rotate(key, *rotation);
    }
    const KeyValueCache& cache = step.cache.of(arm).attention[index];
    append(cache, key, v.select(0, arm), step.pages, places);
    outputs.push_back(attend(query, cache, step.pages, step.rows, places, {form.scale, form.window}));
  }
  return outputs.size() == 1 ? outputs[0].unsqueeze(0) : at::stack(outputs);
}

at::Tensor AttentionBlock::run(const at::Tensor& x, const Step& step) const {
  const at::Tensor q = timed_linear(x, weights_.q_proj, step);
  const at::Tensor k = timed_linear(x, weights_.k_proj, step);
  const at::Tensor v = timed_linear(x, weights_.v_proj, step);
  return timed_linear(attend_arms(q, k, v, form_, index_, step), weights_.o_proj, step);
}

at::Tensor SquaredReluMlpBlock::run(const at::Tensor& x, const Step& step) const {
  at::Tensor inner = timed_linear(x, weights_.up_proj, step);
  {
    const KernelClock::Scope scope(step.clock, "", "activation");
    inner = squared_relu(inner);
  }
  return timed_linear(inner, weights_.down_proj, step);
}

}  // namespace replayeval
