#include "eval/executors/mamba2_executor.h"

#include <ATen/ATen.h>
#include <c10/core/DeviceGuard.h>

#include <stdexcept>
#include <string>

#include "eval/executors/device.h"
#include "kernels/mamba2/conv.h"

namespace replayeval {
namespace {

std::int64_t inner_size(const mamba2::Shape& shape) { return shape.num_heads * shape.head_dim; }

std::int64_t conv_dim(const mamba2::Shape& shape) {
  return inner_size(shape) + 2 * shape.num_groups * shape.state_size;
}

// The address of element `offset` of a tensor's first row.
void* at_element(const at::Tensor& tensor, std::int64_t offset = 0) {
  return static_cast<char*>(tensor.data_ptr()) + static_cast<std::size_t>(offset) * tensor.element_size();
}

const float* floats(const at::Tensor& tensor) { return tensor.defined() ? tensor.const_data_ptr<float>() : nullptr; }

mamba2::Block make_block(std::int64_t batch, std::int64_t tokens, const at::Tensor& slots) {
  if (!slots.defined()) return {batch, tokens, nullptr};
  if (slots.dim() != 1 || slots.size(0) != batch || slots.scalar_type() != at::kInt || !slots.is_contiguous())
    throw std::invalid_argument("slots: expected [" + std::to_string(batch) + "] contiguous int32");
  return {batch, tokens, slots.const_data_ptr<std::int32_t>()};
}

mamba2::Parameters make_parameters(const Mamba2Mixer& mixer) {
  return {floats(mixer.A_log), floats(mixer.D), floats(mixer.dt_bias), mixer.dt_min, mixer.dt_max};
}

mamba2::State make_state(const Arm& arm, const Mamba2Cache& cache) {
  static_assert(sizeof(StorageCounts) == 3 * sizeof(std::int64_t));
  return {cache.state.data_ptr(), arm.state_storage, cache.state.size(0),
          reinterpret_cast<StorageCounts*>(cache.counts.data_ptr())};
}

mamba2::Ring make_ring(const Mamba2Cache& cache) {
  return {cache.ring_x.data_ptr(), cache.ring_B.data_ptr(), cache.ring_dt.data_ptr<float>(),
          cache.cursor.const_data_ptr<std::int32_t>()};
}

void check_projected(const Mamba2Mixer& mixer, const Mamba2Cache& cache, const at::Tensor& projected) {
  if (projected.dim() != 3 || projected.size(2) != mixer.projection_size() || !projected.is_contiguous() ||
      projected.scalar_type() != cache.conv_state.scalar_type())
    throw std::invalid_argument("projected: expected contiguous [batch, tokens, " +
                                std::to_string(mixer.projection_size()) + "] " +
                                c10::toString(cache.conv_state.scalar_type()) + ", the mixer's in_proj output");
}

void run_conv(const Mamba2Mixer& mixer, Mamba2Cache& cache, const Device& device, const mamba2::Block& block,
              const at::Tensor& projected, const at::Tensor& out) {
  mamba2::Conv conv;
  conv.channels = conv_dim(mixer.shape);
  conv.conv_kernel = mixer.conv_kernel;
  conv.weight = floats(mixer.conv_weight);
  conv.bias = floats(mixer.conv_bias);
  conv.in = at_element(projected, inner_size(mixer.shape));
  conv.in_stride = mixer.projection_size();
  conv.out = out.data_ptr();
  conv.out_stride = conv.channels;
  conv.state = cache.conv_state.data_ptr();
  conv.slots = cache.conv_state.size(0);
  conv.dtype = kernel_dtype(out.scalar_type());
  mamba2::causal_conv(device, block, conv);
}

void run_recurrence(const Mamba2Mixer& mixer, const Arm& arm, Mamba2Cache& cache, const Device& device,
                    const mamba2::Block& block, const at::Tensor& projected, const at::Tensor& conv,
                    const at::Tensor& y) {
  const std::int64_t inner = inner_size(mixer.shape);
  const std::int64_t group = mixer.shape.num_groups * mixer.shape.state_size;
  mamba2::Inputs inputs;
  inputs.x = at_element(conv);
  inputs.B = at_element(conv, inner);
  inputs.C = at_element(conv, inner + group);
  inputs.dt = at_element(projected, inner + conv_dim(mixer.shape));
  inputs.x_stride = inputs.B_stride = inputs.C_stride = conv_dim(mixer.shape);
  inputs.dt_stride = mixer.projection_size();
  inputs.dtype = kernel_dtype(conv.scalar_type());
  const mamba2::Output output{y.data_ptr(), inner, kernel_dtype(y.scalar_type())};
  if (arm.executor == Executor::exact)
    mamba2::exact(device, mixer.shape, block, inputs, make_parameters(mixer), make_state(arm, cache), output);
  else
    mamba2::replay(device, mixer.shape, arm.replay, block, inputs, make_parameters(mixer), make_state(arm, cache),
                   make_ring(cache), output);
}

void run_gated_norm(const Mamba2Mixer& mixer, const Device& device, const at::Tensor& projected, const at::Tensor& y,
                    const at::Tensor& out) {
  mamba2::GatedNorm norm;
  norm.rows = y.size(0) * y.size(1);
  norm.width = inner_size(mixer.shape);
  norm.group_size = mixer.norm_group_size;
  norm.eps = mixer.norm_eps;
  norm.weight = floats(mixer.norm_weight);
  norm.y = y.data_ptr();
  norm.y_stride = norm.width;
  norm.y_dtype = kernel_dtype(y.scalar_type());
  norm.z = projected.data_ptr();
  norm.z_stride = mixer.projection_size();
  norm.out = out.data_ptr();
  norm.out_stride = norm.width;
  norm.dtype = kernel_dtype(out.scalar_type());
  norm.form = mixer.gate_form;
  mamba2::gated_norm(device, norm);
}

}  // namespace

std::int64_t Mamba2Mixer::projection_size() const { return inner_size(shape) + conv_dim(shape) + shape.num_heads; }

Mamba2Cache make_mamba2_cache(const Mamba2Mixer& mixer, const Arm& arm, std::int64_t slots,
                              at::ScalarType compute_dtype, const at::Device& device, at::Tensor shared_cursor) {
  validate(arm);
  if (arm.executor == Executor::replay && arm.ring_form != RingForm::inputs)
    throw std::invalid_argument("arm \"" + arm.name + "\": ring_form deltas; expected inputs for Mamba-2 layers");
  const mamba2::Shape& shape = mixer.shape;
  const auto options = at::TensorOptions().device(device);
  Mamba2Cache cache;
  cache.state = at::zeros({slots, shape.num_heads, shape.head_dim, shape.state_size},
                          options.dtype(scalar_type(arm.state_storage.dtype)));
  cache.conv_state = at::zeros({slots, conv_dim(shape), mixer.conv_kernel - 1}, options.dtype(compute_dtype));
  cache.counts = at::zeros({3}, options.dtype(at::kLong));
  if (arm.executor == Executor::exact) return cache;
  const std::int64_t buffer_len = arm.replay.buffer_len;
  const auto ring = options.dtype(scalar_type(arm.replay.ring_dtype));
  cache.ring_x = at::zeros({slots, shape.num_heads, buffer_len, shape.head_dim}, ring);
  cache.ring_B = at::zeros({slots, shape.num_groups, buffer_len, shape.state_size}, ring);
  cache.ring_dt = at::zeros({slots, shape.num_heads, buffer_len}, options.dtype(at::kFloat));
  cache.cursor = shared_cursor.defined() ? std::move(shared_cursor) : at::zeros({slots}, options.dtype(at::kInt));
  return cache;
}

Mamba2Result run_mamba2(const Mamba2Mixer& mixer, const Arm& arm, Mamba2Cache& cache, const at::Tensor& projected,
                        const at::Tensor& slots, KernelClock* clock) {
  const c10::DeviceGuard current(projected.device());
  check_projected(mixer, cache, projected);
  const std::int64_t batch = projected.size(0), tokens = projected.size(1);
  const mamba2::Block block = make_block(batch, tokens, slots);
  const Device device = kernel_device(projected.device());
  Mamba2Result result;
  result.conv = at::empty({batch, tokens, conv_dim(mixer.shape)}, projected.options());
  result.y = at::empty({batch, tokens, inner_size(mixer.shape)}, projected.options());
  result.out = at::empty_like(result.y);
  {
    const KernelClock::Scope scope(clock, arm.name, "conv");
    run_conv(mixer, cache, device, block, projected, result.conv);
  }
  {
    const KernelClock::Scope scope(clock, arm.name, "mamba2");
    run_recurrence(mixer, arm, cache, device, block, projected, result.conv, result.y);
  }
  const KernelClock::Scope scope(clock, arm.name, "gated_norm");
  run_gated_norm(mixer, device, projected, result.y, result.out);
  return result;
}

void advance_cursor(const Arm& arm, const at::Tensor& cursor, std::int64_t batch, std::int64_t tokens,
                    const at::Tensor& slots) {
  if (arm.executor == Executor::exact) return;
  const c10::DeviceGuard current(cursor.device());
  mamba2::advance_cursors(kernel_device(cursor.device()), make_block(batch, tokens, slots), arm.replay.buffer_len,
                          cursor.data_ptr<std::int32_t>());
}

at::Tensor present_state(const Mamba2Mixer& mixer, const Arm& arm, const Mamba2Cache& cache, std::int64_t batch,
                         const at::Tensor& slots) {
  const c10::DeviceGuard current(cache.state.device());
  if (arm.executor == Executor::exact) {
    const at::Tensor rows = slots.defined() ? cache.state.index_select(0, slots) : cache.state.narrow(0, 0, batch);
    return rows.to(at::kFloat, /*non_blocking=*/false, /*copy=*/true);
  }
  const mamba2::Shape& shape = mixer.shape;
  at::Tensor state =
      at::empty({batch, shape.num_heads, shape.head_dim, shape.state_size}, cache.state.options().dtype(at::kFloat));
  mamba2::reconstruct(kernel_device(cache.state.device()), shape, arm.replay, make_block(batch, 1, slots),
                      make_parameters(mixer), make_state(arm, cache), make_ring(cache), state.data_ptr<float>());
  return state;
}

}  // namespace replayeval
