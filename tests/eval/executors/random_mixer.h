// A Mamba-2 mixer with random weights and random inputs for it.
#pragma once

#include <ATen/ATen.h>

#include "eval/executors/mamba2_executor.h"

namespace replayeval::testing {

// Widths that are no multiples of 32: 6 heads of 24 in 3 groups, state size 40.
inline Mamba2Mixer random_mixer(const at::Device& device) {
  const auto random = [](std::initializer_list<std::int64_t> shape) { return at::randn(at::IntArrayRef(shape)); };
  Mamba2Mixer mixer;
  mixer.shape = {6, 3, 24, 40};
  const std::int64_t inner = 6 * 24, channels = inner + 2 * 3 * 40;
  mixer.conv_weight = random({channels, 4}).mul(0.5).to(device);
  mixer.conv_bias = random({channels}).mul(0.2).to(device);
  mixer.A_log = random({6}).to(device);
  mixer.D = random({6}).to(device);
  mixer.dt_bias = random({6}).sub(1.0).to(device);
  mixer.dt_max = std::numeric_limits<float>::infinity();
  mixer.norm_weight = random({inner}).to(device);
  mixer.norm_group_size = inner / 3;
  return mixer;
}

inline at::Tensor random_projected(const Mamba2Mixer& mixer, std::int64_t batch, std::int64_t tokens,
                                   at::ScalarType type) {
  return at::randn({batch, tokens, mixer.projection_size()}).to(mixer.D.device(), type);
}

}  // namespace replayeval::testing
