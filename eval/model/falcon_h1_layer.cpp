#include "eval/model/falcon_h1_layer.h"

#include <ATen/ATen.h>

namespace replayeval {
namespace {

at::Tensor scaled(const at::Tensor& x, double multiplier) { return multiplier == 1.0 ? x : multiply(x, multiplier); }

}  // namespace

ResidualStream ParallelLayer::run(ResidualStream stream, const Step& step) const {
  at::Tensor mamba_in, attention_in;
  {
    const KernelClock::Scope scope(step.clock, "", "norm");
    const at::Tensor x = add_and_norm(stream, norm_, compute_dtype_);
    mamba_in = scaled(x, multipliers_.mamba_in);
    attention_in = scaled(x, multipliers_.attention_in);
  }
  const at::Tensor mamba = mamba_->run(mamba_in, step);
  const at::Tensor attention = attention_->run(attention_in, step);
  const KernelClock::Scope scope(step.clock, "", "norm");
  return {stream.sum,
          add_residual(scaled(mamba, multipliers_.mamba_out), scaled(attention, multipliers_.attention_out))};
}

}  // namespace replayeval
