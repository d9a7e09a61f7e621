#include "eval/executors/mixer.h"

#include <ATen/ATen.h>
#include <c10/core/DeviceGuard.h>

#include <stdexcept>
#include <string>
#include <utility>

#include "eval/executors/device.h"
#include "eval/executors/tensor_memory.h"
#include "kernels/conv/conv.h"
#include "kernels/mamba2/mamba2.h"

namespace replayeval {
namespace {

DecodeBlock make_block(std::int64_t batch, std::int64_t tokens, const at::Tensor& slots) {
  if (!slots.defined()) return {batch, tokens, nullptr};
  if (slots.dim() != 1 || slots.size(0) != batch || slots.scalar_type() != at::kInt || !slots.is_contiguous())
    throw std::invalid_argument("slots: expected [" + std::to_string(batch) + "] contiguous int32");
  return {batch, tokens, slots.const_data_ptr<std::int32_t>()};
}

}  // namespace

State Mixer::state_of(const Arm& arm, const MixerCache& cache) {
  static_assert(sizeof(StorageCounts) == 3 * sizeof(std::int64_t));
  return {cache.state.data_ptr(), arm.state_storage, cache.state.size(0),
          reinterpret_cast<StorageCounts*>(cache.counts.data_ptr())};
}

MixerCache Mixer::make_cache(const Arm& arm, std::int64_t slots, at::ScalarType compute_dtype,
                             at::Tensor shared_cursor) const {
  validate(arm);
  const auto options = at::TensorOptions().device(device());
  MixerCache cache;
  cache.state = at::zeros({slots, sizes_.num_heads, sizes_.state_rows, sizes_.state_columns},
                          options.dtype(scalar_type(arm.state_storage.dtype)));
  cache.conv_state = at::zeros({slots, sizes_.conv_dim, conv_.conv_kernel - 1}, options.dtype(compute_dtype));
  cache.counts = at::zeros({3}, options.dtype(at::kLong));
  if (arm.executor == Executor::exact) return cache;
  cache.ring = make_ring(arm, slots, device());
  cache.cursor = shared_cursor.defined() ? std::move(shared_cursor) : at::zeros({slots}, options.dtype(at::kInt));
  return cache;
}

void Mixer::check_projected(const MixerCache& cache, const at::Tensor& projected) const {
  if (projected.dim() != 3 || projected.size(2) != sizes_.projection || !projected.is_contiguous() ||
      projected.scalar_type() != cache.conv_state.scalar_type())
    throw std::invalid_argument("projected: expected contiguous [batch, tokens, " + std::to_string(sizes_.projection) +
                                "] " + c10::toString(cache.conv_state.scalar_type()) + ", the mixer's input");
}

void Mixer::run_conv(MixerCache& cache, const Device& device, const DecodeBlock& block, const at::Tensor& projected,
                     const at::Tensor& out) const {
  Conv conv;
  conv.channels = sizes_.conv_dim;
  conv.conv_kernel = conv_.conv_kernel;
  conv.weight = floats(conv_.weight);
  conv.bias = floats(conv_.bias);
  conv.in = at_element(projected, sizes_.conv_begin);
  conv.in_stride = sizes_.projection;
  conv.out = out.data_ptr();
  conv.out_stride = conv.channels;
  conv.state = cache.conv_state.data_ptr();
  conv.slots = cache.conv_state.size(0);
  conv.dtype = kernel_dtype(out.scalar_type());
  causal_conv(device, block, conv);
}

void Mixer::run_gated_norm(const Device& device, const at::Tensor& projected, const at::Tensor& y,
                           const at::Tensor& out) const {
  GatedNorm norm;
  norm.rows = y.size(0) * y.size(1);
  norm.width = sizes_.inner();
  norm.group_size = norm_.group_size;
  norm.eps = norm_.eps;
  norm.weight = floats(norm_.weight);
  norm.y = y.data_ptr();
  norm.y_stride = norm.width;
  norm.y_dtype = kernel_dtype(y.scalar_type());
  norm.z = at_element(projected, sizes_.gate_begin);
  norm.z_stride = sizes_.projection;
  norm.out = out.data_ptr();
  norm.out_stride = norm.width;
  norm.dtype = kernel_dtype(out.scalar_type());
  norm.form = norm_.form;
  norm.activation = norm_.activation;
  gated_norm(device, norm);
}

MixerResult Mixer::run(const Arm& arm, MixerCache& cache, const at::Tensor& projected, const at::Tensor& slots,
                       KernelClock* clock, const at::Tensor& out) const {
  const c10::DeviceGuard current(projected.device());
  check_projected(cache, projected);
  const std::int64_t batch = projected.size(0), tokens = projected.size(1);
  const DecodeBlock block = make_block(batch, tokens, slots);
  const Device device = kernel_device(projected.device());
  const KernelClock::GraphScope whole(clock, arm.name, "mixer");
  MixerResult result;
  result.conv = at::empty({batch, tokens, sizes_.conv_dim}, projected.options());
  result.y = at::empty({batch, tokens, sizes_.inner()}, projected.options());
  result.out = out.defined() ? out : at::empty_like(result.y);
  if (result.out.sizes() != result.y.sizes() || !result.out.is_contiguous() ||
      result.out.scalar_type() != result.y.scalar_type())
    throw std::invalid_argument("out: expected contiguous [batch, tokens, " + std::to_string(sizes_.inner()) + "] " +
                                c10::toString(result.y.scalar_type()));
  {
    const KernelClock::Scope scope(clock, arm.name, "conv");
    run_conv(cache, device, block, projected, result.conv);
  }
  {
    const KernelClock::Scope scope(clock, arm.name, family());
    run_recurrence({arm, cache, device, block, projected, result.conv, result.y});
  }
  const KernelClock::Scope scope(clock, arm.name, "gated_norm");
  run_gated_norm(device, projected, result.y, result.out);
  return result;
}

at::Tensor Mixer::present_state(const Arm& arm, const MixerCache& cache, std::int64_t batch,
                                const at::Tensor& slots) const {
  const c10::DeviceGuard current(cache.state.device());
  if (arm.executor == Executor::exact) {
    const at::Tensor rows = slots.defined() ? cache.state.index_select(0, slots) : cache.state.narrow(0, 0, batch);
    return rows.to(at::kFloat, /*non_blocking=*/false, /*copy=*/true);
  }
  at::Tensor state = at::empty({batch, sizes_.num_heads, sizes_.state_rows, sizes_.state_columns},
                               cache.state.options().dtype(at::kFloat));
  reconstruct(arm, cache, kernel_device(cache.state.device()), make_block(batch, 1, slots), state.data_ptr<float>());
  return state;
}

void advance_cursor(const Arm& arm, const at::Tensor& cursor, std::int64_t batch, std::int64_t tokens,
                    const at::Tensor& slots) {
  if (arm.executor == Executor::exact) return;
  const c10::DeviceGuard current(cursor.device());
  mamba2::advance_cursors(kernel_device(cursor.device()), make_block(batch, tokens, slots), arm.replay.buffer_len,
                          cursor.data_ptr<std::int32_t>());  // the same for every family
}

}  // namespace replayeval
