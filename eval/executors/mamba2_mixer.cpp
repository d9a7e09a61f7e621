#include "eval/executors/mamba2_mixer.h"

#include <ATen/ATen.h>

#include <stdexcept>
#include <string>
#include <utility>

#include "eval/executors/device.h"
#include "eval/executors/mamba2_gold.h"
#include "eval/executors/tensor_memory.h"

namespace replayeval {
namespace {

std::int64_t group_width(const mamba2::Shape& shape) { return shape.num_groups * shape.state_size; }

mamba2::Ring ring_of(const MixerCache& cache) {
  return {cache.ring[0].data_ptr(), cache.ring[1].data_ptr(), cache.ring[2].data_ptr<float>(),
          cache.cursor.const_data_ptr<std::int32_t>()};
}

mamba2::ReplayForm form_of(const Replay& replay) {
  return {replay.buffer_len, replay.route, replay.flush, replay.ring_dtype};
}

}  // namespace

MixerSizes mamba2_sizes(const mamba2::Shape& shape) {
  MixerSizes sizes;
  sizes.num_heads = shape.num_heads;
  sizes.state_rows = shape.head_dim;
  sizes.state_columns = shape.state_size;
  sizes.conv_begin = sizes.inner();
  sizes.conv_dim = sizes.inner() + 2 * group_width(shape);
  sizes.projection = sizes.conv_begin + sizes.conv_dim + shape.num_heads;
  return sizes;
}

Mamba2Mixer::Mamba2Mixer(const mamba2::Shape& shape, MixerConv conv, MixerNorm norm, Mamba2Weights weights)
    : Mixer(mamba2_sizes(shape), std::move(conv), std::move(norm)), shape_(shape), weights_(std::move(weights)) {}

const std::string& Mamba2Mixer::family() const {
  static const std::string name = "mamba2";
  return name;
}

mamba2::Parameters Mamba2Mixer::parameters() const {
  return {floats(weights_.A_log), floats(weights_.D), floats(weights_.dt_bias), weights_.dt_min, weights_.dt_max};
}

std::unique_ptr<GoldRecurrence> Mamba2Mixer::gold() const { return std::make_unique<Mamba2Gold>(*this); }

std::vector<at::Tensor> Mamba2Mixer::make_ring(const Arm& arm, std::int64_t slots, const at::Device& device) const {
  if (arm.ring_form != RingForm::inputs)
    throw std::invalid_argument("arm \"" + arm.name + "\": ring_form deltas; expected inputs for Mamba-2 layers");
  const std::int64_t buffer_len = arm.replay.buffer_len;
  const auto options = at::TensorOptions().device(device).dtype(scalar_type(arm.replay.ring_dtype));
  return {at::zeros({slots, shape_.num_heads, buffer_len, shape_.head_dim}, options),
          at::zeros({slots, shape_.num_groups, buffer_len, shape_.state_size}, options),
          at::zeros({slots, shape_.num_heads, buffer_len}, options.dtype(at::kFloat))};
}

void Mamba2Mixer::run_recurrence(const Call& call) const {
  const std::int64_t inner = sizes().inner();
  mamba2::Inputs inputs;
  inputs.x = at_element(call.conv);
  inputs.B = at_element(call.conv, inner);
  inputs.C = at_element(call.conv, inner + group_width(shape_));
  inputs.dt = at_element(call.projected, sizes().projection - shape_.num_heads);
  inputs.x_stride = inputs.B_stride = inputs.C_stride = sizes().conv_dim;
  inputs.dt_stride = sizes().projection;
  inputs.dtype = kernel_dtype(call.conv.scalar_type());
  const Output output{call.y.data_ptr(), inner, kernel_dtype(call.y.scalar_type())};
  const State state = state_of(call.arm, call.cache);
  if (call.arm.executor == Executor::exact)
    mamba2::exact(call.device, shape_, call.block, inputs, parameters(), state, output);
  else
    mamba2::replay(call.device, shape_, form_of(call.arm.replay), call.block, inputs, parameters(), state,
                   ring_of(call.cache), output);
}

void Mamba2Mixer::reconstruct(const Arm& arm, const MixerCache& cache, const Device& device, const DecodeBlock& block,
                              float* state) const {
  mamba2::reconstruct(device, shape_, form_of(arm.replay), block, parameters(), state_of(arm, cache), ring_of(cache),
                      state);
}

}  // namespace replayeval
