#include "eval/model/mixture_block.h"

#include <ATen/ATen.h>

namespace replayeval {

at::Tensor MixtureBlock::run(const at::Tensor& x, const Step& step) const {
  Routing routing;
  {
    const KernelClock::Scope scope(step.clock, "", "router");
    routing = route(x, parts_.router);
  }
  const bool latent = parts_.latent_in.weight.defined();
  at::Tensor out = latent ? timed_linear(x, parts_.latent_in, step) : x;
  {
    const KernelClock::Scope scope(step.clock, "", "experts");
    out = run_experts(out, routing, parts_.experts);
  }
  if (latent) out = timed_linear(out, parts_.latent_out, step);
  return parts_.shared ? add_residual(out, parts_.shared->run(x, step)) : out;
}

}  // namespace replayeval
