// The next token of each row, greedy or drawn. Draws depend on seed, item, repeat and position only, never on arm, slot
// or batch, so that two arms with equal logits draw equal tokens.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace replayeval {

// What a draw depends on.
struct Draw {
  std::uint64_t seed = 0, item = 0, repeat = 0, position = 0;
};

// Uniform in [0, 1), of Philox 4x32-10 (Salmon et al. 2011).
double uniform_of(const Draw& draw);

// What tokens are drawn from.
struct Sampling {
  double temperature = 0.0;  // 0: greedy, and nothing is drawn; otherwise finite and above
  std::int64_t top_k = 0;    // of the largest logits, the lowest ids among equals; 0: all
  double top_p = 1.0;        // in (0, 1]: of these, the likeliest whose likelier ones make up less than this

  bool draws() const { return temperature > 0.0; }
  bool is_limited() const { return top_k > 0 || top_p < 1.0; }
};

// "top_p is 1.5; expected a number above 0, at most 1", and the like; "" if there is nothing wrong.
std::string fault_of(const Sampling& sampling);

// How a row's token is chosen.
struct Choice {
  Sampling sampling;
  double uniform = 0.0;  // of a drawn token
};

struct ChosenTokens {
  std::vector<std::int32_t> tokens;  // [rows]
  // [rows]: greedy, and the two largest logits are equal up to the spacing of the logits' type.
  std::vector<bool> ties;
  std::optional<std::size_t> not_finite;  // the first row with a logit that is not finite; its token means nothing
};

// logits: [rows, vocab] float32, on any device; choices: one a row. Greedy: the largest logit, the lowest id among
// equals. Otherwise the token in which the uniform falls, of the cumulated exp(logit / temperature) in float64, by id;
// with top_k or top_p by falling logit, of the tokens that are left. A row's result depends on nothing but its logits
// and its choice: neither on its place nor on the other rows. `spacing`:
// distance of neighbouring numbers of the type that logits were computed in, as a share of their size. The host waits
// for the device once. Throws std::invalid_argument unless there is one choice a row.
ChosenTokens choose_tokens(const at::Tensor& logits, const std::vector<Choice>& choices, double spacing);

}  // namespace replayeval
