// The next token of each row, greedy or drawn. Draws depend on seed, item, repeat and position only, never on arm, slot
// or batch, so that two arms with equal logits draw equal tokens.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace replayeval {

// What a draw depends on.
struct Draw {
  std::uint64_t seed = 0, item = 0, repeat = 0, position = 0;
};

// Uniform in [0, 1), of Philox 4x32-10 (Salmon et al. 2011).
double uniform_of(const Draw& draw);

struct NextTokens {
  at::Tensor tokens;  // [rows] int64 on the CPU
  at::Tensor ties;    // [rows] bool on the CPU: the two largest logits are equal up to the spacing of the logits' type
};

// logits: [rows, vocab] float32. Temperature 0: the largest logit, the lowest id among equals. Otherwise the token in
// which uniforms[row] falls, of the cumulated softmax of logits / temperature in float64. `spacing`: distance of
// neighbouring numbers of the type that logits were computed in, as a share of their size. Throws std::runtime_error
// naming the row where a logit is not finite.
NextTokens choose_tokens(const at::Tensor& logits, double temperature, const std::vector<double>& uniforms,
                         double spacing);

}  // namespace replayeval
