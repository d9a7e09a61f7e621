#include "eval/model/zamba2_layer.h"

#include <ATen/ATen.h>

#include "eval/model/gated_mlp.h"

namespace replayeval {
namespace {

at::Tensor adapted(const at::Tensor& x, const Linear& shared, const std::optional<Adapter>& adapter, const Step& step) {
  at::Tensor out = timed_linear(x, shared, step);
  if (!adapter) return out;
  return add_residual(out, timed_linear(timed_linear(x, adapter->down, step), adapter->up, step));
}

at::Tensor normed(const at::Tensor& x, const Norm& norm, at::ScalarType type, const Step& step) {
  const KernelClock::Scope scope(step.clock, "", "norm");
  return rms_norm(x, norm, type);
}

}  // namespace

at::Tensor SharedBlockLayer::attention(const at::Tensor& x, const Step& step) const {
  const at::Tensor q = adapted(x, block_->q_proj, use_.q_adapter, step);
  const at::Tensor k = adapted(x, block_->k_proj, use_.k_adapter, step);
  const at::Tensor v = adapted(x, block_->v_proj, use_.v_adapter, step);
  return timed_linear(attend_arms(q, k, v, block_->attention, use_.attention_index, step), block_->o_proj, step);
}

at::Tensor SharedBlockLayer::mlp(const at::Tensor& x, const Step& step) const {
  const std::vector<at::Tensor> halves = adapted(x, block_->gate_up_proj, use_.gate_up_adapter, step).chunk(2, -1);
  at::Tensor inner;
  {
    const KernelClock::Scope scope(step.clock, "", "activation");
    inner = gated(halves[0], halves[1], block_->activation);
  }
  return timed_linear(inner, block_->down_proj, step);
}

ResidualStream SharedBlockLayer::run(ResidualStream before, const Step& step) const {
  const at::Tensor stream = whole(before);
  const at::Tensor wide = at::cat({stream, step.embeddings.to(stream.options())}, -1);
  at::Tensor x = attention(normed(wide, block_->input_norm, compute_dtype_, step), step);
  x = mlp(normed(x, block_->mlp_norm, compute_dtype_, step), step);
  x = add_residual(stream, timed_linear(x, use_.linear, step));
  return {stream, mamba_->run(normed(x, mamba_norm_, compute_dtype_, step), step)};
}

}  // namespace replayeval
