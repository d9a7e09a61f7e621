#include "eval/model/gated_mlp.h"

#include <ATen/ATen.h>

namespace replayeval {

at::Tensor gated(const at::Tensor& gate, const at::Tensor& up, Activation activation) {
  if (!gate.is_cpu()) return activate(gate, activation).mul_(up);
  std::vector<at::Tensor> arms;
  for (std::int64_t arm = 0; arm < gate.size(0); ++arm)
    arms.push_back(activate(gate.select(0, arm).contiguous(), activation).mul_(up.select(0, arm)));
  return at::stack(arms);
}

at::Tensor GatedMlpBlock::run(const at::Tensor& x, const Step& step) const {
  at::Tensor gate = timed_linear(x, weights_.gate_proj, step);
  const at::Tensor up = timed_linear(x, weights_.up_proj, step);
  {
    const KernelClock::Scope scope(step.clock, "", "activation");
    if (form_.gate_multiplier != 1.0) gate = multiply(gate, form_.gate_multiplier);
    gate = gated(gate, up, form_.activation);
  }
  at::Tensor out = timed_linear(gate, weights_.down_proj, step);
  if (form_.down_multiplier == 1.0) return out;
  const KernelClock::Scope scope(step.clock, "", "activation");
  return multiply(out, form_.down_multiplier);
}

}  // namespace replayeval
