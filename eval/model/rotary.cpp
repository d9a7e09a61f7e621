#include "eval/model/rotary.h"

#include <ATen/ATen.h>

namespace replayeval {

Rotary default_rotary(double theta, std::int64_t rotary_dim, const at::Device& device) {
  const at::Tensor exponents =
      at::arange(0, rotary_dim, 2, at::TensorOptions().dtype(at::kFloat)).div(static_cast<double>(rotary_dim));
  return {at::pow(theta, exponents).reciprocal().to(device), 1.0};
}

at::Tensor rotate(const at::Tensor& heads, const at::Tensor& positions, const Rotary& rotary) {
  const std::int64_t dim = rotary.rotary_dim(), half = dim / 2;
  // [rows, 1, half]: every head of a row turns alike.
  const at::Tensor angles = positions.to(at::kFloat).unsqueeze(1).mul(rotary.inverse_frequency).unsqueeze(1);
  const at::Tensor cosine = angles.cos().mul(rotary.attention_factor).to(heads.scalar_type());
  const at::Tensor sine = angles.sin().mul(rotary.attention_factor).to(heads.scalar_type());
  const at::Tensor first = heads.narrow(-1, 0, half), second = heads.narrow(-1, half, half);
  return at::cat({first.mul(cosine).sub(second.mul(sine)), second.mul(cosine).add(first.mul(sine)),
                  heads.narrow(-1, dim, heads.size(-1) - dim)},
                 -1);
}

}  // namespace replayeval
