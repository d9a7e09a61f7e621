#include "eval/model/normed_attention.h"

#include <ATen/ATen.h>

namespace replayeval {
namespace {

// x: [arms, rows, width], normalised in pieces as wide as the norm.
at::Tensor normed(const at::Tensor& x, const Norm& norm, const Step& step) {
  const KernelClock::Scope scope(step.clock, "", "norm");
  const at::Tensor pieces = x.reshape({x.size(0), x.size(1), -1, norm.weight.size(0)});
  return rms_norm(pieces, norm, x.scalar_type()).view(x.sizes());
}

}  // namespace

at::Tensor NormedAttentionBlock::run(const at::Tensor& x, const Step& step) const {
  at::Tensor q = timed_linear(x, weights_.q_proj, step), gate;
  if (weights_.gated) {
    const at::Tensor heads = q.view({q.size(0), q.size(1), form_.num_heads, 2 * form_.head_dim});
    gate = heads.narrow(-1, form_.head_dim, form_.head_dim).flatten(2);
    q = heads.narrow(-1, 0, form_.head_dim).flatten(2);
  }
  const at::Tensor k = timed_linear(x, weights_.k_proj, step);
  const at::Tensor v = timed_linear(x, weights_.v_proj, step);
  at::Tensor out =
      attend_arms(normed(q, weights_.q_norm, step), normed(k, weights_.k_norm, step), v, form_, index_, step);
  if (gate.defined()) {
    const KernelClock::Scope scope(step.clock, "", "activation");
    out = multiply_by(out, per_arm(gate, [](const at::Tensor& part) { return at::sigmoid(part); }));
  }
  return timed_linear(out, weights_.o_proj, step);
}

}  // namespace replayeval
