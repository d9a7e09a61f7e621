#include "eval/model/rotary.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <numbers>

namespace replayeval {
namespace {

// 2 i / dim, in float32 as the published code has it.
at::Tensor exponents(std::int64_t dim) {
  return at::arange(0, dim, 2, at::TensorOptions().dtype(at::kFloat)).div(static_cast<double>(dim));
}

at::Tensor wavelengths(const RotaryConfig& config) { return at::pow(config.theta, exponents(config.rotary_dim)); }

at::Tensor as_tensor(const std::vector<double>& values) { return at::tensor(values).to(at::kFloat); }

// Where, counted in pairs of elements, a pair turns `turns` times over the original length. arXiv 2309.00071, eq.
// 17-18.
double pair_of(const RotaryConfig& config, double turns) {
  const double length = static_cast<double>(config.original_max_positions);
  return static_cast<double>(config.rotary_dim) * std::log(length / (turns * 2.0 * std::numbers::pi)) /
         (2.0 * std::log(config.theta));
}

// Fast pairs keep their frequency, slow ones are stretched by the factor, a ramp between them.
at::Tensor yarn_frequencies(const RotaryConfig& config) {
  double first = pair_of(config, config.beta_fast), last = pair_of(config, config.beta_slow);
  if (config.truncate) {
    first = std::floor(first);
    last = std::ceil(last);
  }
  first = std::max(first, 0.0);
  last = std::min(last, static_cast<double>(config.rotary_dim - 1));
  if (first == last) last += 0.001;
  const at::Tensor pairs = at::arange(config.rotary_dim / 2, at::TensorOptions().dtype(at::kFloat));
  const at::Tensor kept = at::rsub(pairs.sub(first).div(last - first).clamp(0.0, 1.0), 1.0);
  const at::Tensor lengths = wavelengths(config);
  const at::Tensor stretched = lengths.mul(config.factor).reciprocal();
  return stretched.mul(at::rsub(kept, 1.0)).add(lengths.reciprocal().mul(kept));
}

// Slow pairs are stretched, fast ones kept, those between interpolated.
at::Tensor llama3_frequencies(const RotaryConfig& config) {
  const double length = static_cast<double>(config.original_max_positions);
  const double low = config.low_freq_factor, high = config.high_freq_factor;
  const at::Tensor frequencies = wavelengths(config).reciprocal();
  const at::Tensor turns = frequencies.reciprocal().mul(2.0 * std::numbers::pi);  // tokens of a full turn
  const at::Tensor stretched = at::where(turns.gt(length / low), frequencies.div(config.factor), frequencies);
  const at::Tensor smooth = turns.reciprocal().mul(length).sub(low).div(high - low);
  const at::Tensor between = at::rsub(smooth, 1.0).mul(stretched).div(config.factor).add(smooth.mul(stretched));
  const at::Tensor is_between = turns.ge(length / high).logical_and(turns.le(length / low));
  return at::where(is_between, between, stretched);
}

at::Tensor frequencies_of(const RotaryConfig& config) {
  switch (config.kind) {
    case RotaryKind::linear:
      return wavelengths(config).reciprocal().div(config.factor);
    case RotaryKind::yarn:
      return yarn_frequencies(config);
    case RotaryKind::longrope:
      return as_tensor(config.short_factor).mul(wavelengths(config)).reciprocal();
    case RotaryKind::llama3:
      return llama3_frequencies(config);
    case RotaryKind::standard:
    case RotaryKind::dynamic:
      break;
  }
  return wavelengths(config).reciprocal();
}

}  // namespace

Rotary make_rotary(const RotaryConfig& config, const at::Device& device) {
  Rotary rotary;
  rotary.inverse_frequency = frequencies_of(config).to(device);
  rotary.attention_factor = config.attention_factor;
  if (config.kind == RotaryKind::longrope) {
    rotary.beyond.emplace();
    rotary.beyond->threshold = config.original_max_positions;
    rotary.beyond->inverse_frequency = as_tensor(config.long_factor).mul(wavelengths(config)).reciprocal().to(device);
  }
  if (config.kind == RotaryKind::dynamic) {
    rotary.beyond.emplace();
    rotary.beyond->threshold = config.max_positions;
    rotary.beyond->exponents = exponents(config.rotary_dim).to(device);
    rotary.beyond->theta = config.theta;
    rotary.beyond->factor = config.factor;
  }
  return rotary;
}

at::Tensor inverse_frequencies(const Rotary& rotary, const at::Tensor& positions) {
  if (!rotary.beyond) return rotary.inverse_frequency.unsqueeze(0);
  const LongRotary& beyond = *rotary.beyond;
  const at::Tensor lengths = positions.unsqueeze(1).add(1);
  at::Tensor theirs;
  if (beyond.inverse_frequency.defined()) {
    theirs = beyond.inverse_frequency;
  } else {
    const auto dim = static_cast<double>(rotary.rotary_dim());
    const at::Tensor stretch = lengths.to(at::kFloat)
                                   .clamp_min(static_cast<double>(beyond.threshold))
                                   .mul(beyond.factor)
                                   .div(static_cast<double>(beyond.threshold))
                                   .sub(beyond.factor - 1.0);
    theirs = at::pow(stretch.pow(dim / (dim - 2.0)).mul(beyond.theta), beyond.exponents).reciprocal();
  }
  return at::where(lengths.gt(beyond.threshold), theirs, rotary.inverse_frequency);
}

Rotation make_rotation(const Rotary& rotary, const at::Tensor& positions, at::ScalarType type) {
  const at::Tensor angles =
      positions.to(at::kFloat).unsqueeze(1).mul(inverse_frequencies(rotary, positions)).unsqueeze(1);
  const at::ScalarType stored = rotary.in_fp32 ? at::kFloat : type;
  return {angles.cos().mul(rotary.attention_factor).to(stored), angles.sin().mul(rotary.attention_factor).to(stored)};
}

at::Tensor rotate(const at::Tensor& heads, const Rotation& rotation) {
  const std::int64_t half = rotation.cosine.size(-1), dim = 2 * half;
  const at::Tensor first = heads.narrow(-1, 0, half), second = heads.narrow(-1, half, half);
  return at::cat(
             {first.mul(rotation.cosine).sub(second.mul(rotation.sine)),
              second.mul(rotation.cosine).add(first.mul(rotation.sine)), heads.narrow(-1, dim, heads.size(-1) - dim)},
             -1)
      .to(heads.scalar_type());
}

}  // namespace replayeval
