// Which experts a token goes to, and with what weights: the routers of published mixtures of experts.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace replayeval {

// How the weights of the chosen experts follow from the router's logits z.
enum class RouterScores : std::uint8_t {
  softmax_of_chosen,  // softmax over the chosen logits (Granite)
  softmax_of_all,     // softmax over all logits, of which the chosen ones' are taken (Qwen3-Next)
  sigmoid             // sigmoid(z) (Nemotron-H, Kimi)
};

struct RouterForm {
  RouterScores scores = RouterScores::softmax_of_chosen;
  std::int64_t chosen = 1;  // experts a token
  // Experts stand in `groups` groups of equal size; those of all but the best `groups_chosen` are out of the choice. A
  // group is as good as the sum of its best two (scores + correction bias).
  std::int64_t groups = 1, groups_chosen = 1;
  bool renormalise = false;  // weights of a token are divided by their sum
  double scale = 1.0;        // then multiplied with this
};

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
