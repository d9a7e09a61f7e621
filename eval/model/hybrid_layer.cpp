#include "eval/model/hybrid_layer.h"

#include <ATen/ATen.h>

namespace replayeval {

at::Tensor PreNormLayer::run(const at::Tensor& stream, const Step& step) const {
  at::Tensor x;
  {
    const KernelClock::Scope scope(step.clock, "", "norm");
    x = rms_norm(stream.to(compute_dtype_), norm_, compute_dtype_);
  }
  x = block_->run(x, step);
  const KernelClock::Scope scope(step.clock, "", "norm");
  if (residual_.multiplier != 1.0) x = multiply(x, residual_.multiplier);
  return add_residual(residual_.in_fp32 ? stream.to(at::kFloat) : stream, x);
}

at::Tensor PostNormLayer::run(const at::Tensor& stream, const Step& step) const {
  const at::Tensor x = block_->run(stream, step);
  const KernelClock::Scope scope(step.clock, "", "norm");
  return add_residual(stream, rms_norm(x, norm_, compute_dtype_));
}

}  // namespace replayeval
