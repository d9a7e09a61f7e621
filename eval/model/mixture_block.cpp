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
  return parts_.shared ? add_residual(out, run_shared(x, step)) : out;
}

std::string MixtureBlock::graph_obstacle() const {
  return run_grouped(parts_.experts) ? "" : "the host reads which experts were chosen";
}

at::Tensor MixtureBlock::run_shared(const at::Tensor& x, const Step& step) const {
  at::Tensor out = parts_.shared->run(x, step);
  if (!parts_.shared_gate.weight.defined()) return out;
  const at::Tensor gate = timed_linear(x, parts_.shared_gate, step);
  const KernelClock::Scope scope(step.clock, "", "activation");
  return multiply_by(out, per_arm(gate, [](const at::Tensor& part) { return at::sigmoid(part); }));
}

}  // namespace replayeval
