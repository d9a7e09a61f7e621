#include "eval/model/hybrid_layer.h"

#include <ATen/ATen.h>

namespace replayeval {

ResidualStream PreNormLayer::run(ResidualStream stream, const Step& step) const {
  at::Tensor x;
  {
    const KernelClock::Scope scope(step.clock, "", "norm");
    x = add_and_norm(stream, norm_, compute_dtype_);
  }
  x = block_->run(x, step);
  const KernelClock::Scope scope(step.clock, "", "norm");
  if (residual_.multiplier != 1.0) x = multiply(x, residual_.multiplier);
  return {residual_.in_fp32 ? stream.sum.to(at::kFloat) : stream.sum, x};
}

ResidualStream PostNormLayer::run(ResidualStream stream, const Step& step) const {
  at::Tensor before;
  {
    const KernelClock::Scope scope(step.clock, "", "norm");
    before = whole(stream);
  }
  const at::Tensor x = block_->run(before, step);
  const KernelClock::Scope scope(step.clock, "", "norm");
  return {before, rms_norm(x, norm_, compute_dtype_)};
}

}  // namespace replayeval
