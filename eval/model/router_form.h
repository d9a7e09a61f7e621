// What tells one router from another.
#pragma once

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

}  // namespace replayeval
