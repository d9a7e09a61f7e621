// Rotary positions of attention heads, as published configurations describe them.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace replayeval {

// The first rotary_dim elements of a head are turned by position * inverse_frequency; element i is paired with
// i + rotary_dim / 2 (the layout of published checkpoints). Cosine and sine are multiplied with `attention_factor`.
struct Rotary {
  at::Tensor inverse_frequency;  // [rotary_dim / 2] float32, on the layer's device
  double attention_factor = 1.0;
  std::int64_t rotary_dim() const { return 2 * inverse_frequency.size(0); }
};

// inverse_frequency[i] = theta^(-2 i / rotary_dim); on `device`.
Rotary default_rotary(double theta, std::int64_t rotary_dim, const at::Device& device);

// heads: [rows, num_heads, head_dim]; positions: [rows] int64 on the same device. Angles in float32; the result in the
// type of `heads`. One arm's rows at a time on the CPU (layers.h says why).
at::Tensor rotate(const at::Tensor& heads, const at::Tensor& positions, const Rotary& rotary);

}  // namespace replayeval
