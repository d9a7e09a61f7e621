// The experts of a mixture: each token's hidden state through the experts that the router chose for it.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "eval/model/router.h"

namespace replayeval {

enum class ExpertForm : std::uint8_t {
  squared_relu,  // down(relu(up x)^2)
  gated_silu     // down(silu(gate x) * up x)
};

struct Experts {
  ExpertForm form = ExpertForm::squared_relu;
  at::Tensor up;    // [experts, inner, in], or gate and up: [experts, 2 * inner, in], the gate first; compute dtype
  at::Tensor down;  // [experts, out, inner]
};

// x: [arms, rows, in] -> [arms, rows, out], same type: the chosen experts' outputs, multiplied with their weights and
// added up in float32 in the routing's order, then rounded once. Equal arms have equal results, to the bit, whatever
// stands beside them. On CUDA in bfloat16 all experts run in one grouped product each way, without waiting for the
// device, where sizes allow (rows of a multiple of 16 bytes); else expert by expert.
bool run_grouped(const Experts& experts);  // whether they do
at::Tensor run_experts(const at::Tensor& x, const Routing& routing, const Experts& experts);

}  // namespace replayeval
