// Rotary positions of attention heads.
//
// Where the frequencies depend on the sequence's length (dynamic, longrope), a token at position p turns by those of a
// sequence of p + 1 tokens, and its key stays in the cache as it was turned: what transformers' cache holds after
// decoding token by token. So logits do not depend on how a sequence is cut into blocks, nor on the execution mode. A
// single call of transformers over a sequence longer than the threshold differs: it turns all of its tokens by the
// frequencies of its whole length. Up to the threshold there is no difference.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>

#include "eval/model/rotary_config.h"

namespace replayeval {

// Frequencies of sequences beyond `threshold` tokens.
struct LongRotary {
  std::int64_t threshold = 0;
  at::Tensor inverse_frequency;      // [rotary_dim / 2] float32: longrope's; undefined for dynamic, which has
  at::Tensor exponents;              // [rotary_dim / 2] float32: frequency i is base^-exponents[i], where for length n
  double theta = 0.0, factor = 1.0;  // base = theta * (factor * n / threshold - (factor - 1))^(dim / (dim - 2))
};

// The first rotary_dim elements of a head are turned by position * frequency; element i is paired with
// i + rotary_dim / 2 (the layout of published checkpoints). Cosine and sine are multiplied with `attention_factor`.
struct Rotary {
  at::Tensor inverse_frequency;  // [rotary_dim / 2] float32, on the layer's device
  double attention_factor = 1.0;
  bool in_fp32 = false;  // cosine and sine stay float32 and turn heads in float32, rounded once after it
  std::optional<LongRotary> beyond;
  std::int64_t rotary_dim() const { return 2 * inverse_frequency.size(0); }
};

Rotary make_rotary(const RotaryConfig& config, const at::Device& device);

// positions: [rows] int64 -> [rows or 1, rotary_dim / 2] float32, on the same device.
at::Tensor inverse_frequencies(const Rotary& rotary, const at::Tensor& positions);

// By how much each of some rows turns.
struct Rotation {
  at::Tensor cosine, sine;  // [rows, 1, rotary_dim / 2]: every head of a row turns alike
};

// positions: [rows] int64 on the device of `rotary`. Angles in float32, rounded to `type` after cosine and sine, unless
// these stay float32.
Rotation make_rotation(const Rotary& rotary, const at::Tensor& positions, at::ScalarType type);

// heads: [rows, num_heads, head_dim] in the rotation's type, or any if that is float32 -> as heads. One arm's rows at a
// time on the CPU (layers.h says why).
at::Tensor rotate(const at::Tensor& heads, const Rotation& rotation);

}  // namespace replayeval
