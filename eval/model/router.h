// Which experts a token goes to, and with what weights: the routers of published mixtures of experts.
#pragma once

#include <ATen/core/Tensor.h>

#include "eval/model/router_form.h"

namespace replayeval {

struct Router {
  // [experts, hidden], in the type that the logits are computed in: float32, or the compute dtype where the published
  // code has it so.
  at::Tensor weight;
  at::Tensor correction_bias;  // [experts] float32, added to the scores for the choice only; or undefined
  RouterForm form;
};

struct Routing {
  at::Tensor experts;  // [arms, rows, chosen] int64, best first
  at::Tensor weights;  // [arms, rows, chosen] float32
};

// x: [arms, rows, hidden]. Equal arms have equal routings, to the bit.
Routing route(const at::Tensor& x, const Router& router);

}  // namespace replayeval
