// What config.json and an architecture's code say of its Mamba-2 mixers, beyond their shapes.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "kernels/gated_norm/gated_norm.h"

namespace replayeval {

struct MambaForm {
  bool use_bias = false;         // of in_proj, and of out_proj unless the next says otherwise
  std::optional<bool> out_bias;  // of out_proj
  bool use_conv_bias = true;
  float dt_min = 0.0F, dt_max = 0.0F;  // bounds of softplus(dt + dt_bias)
  GateForm gate = GateForm::gate_then_norm;
  std::int64_t norm_group_size = 0;  // of the gated norm; without a norm any divisor of its width
  double norm_eps = 1e-5;
  std::array<double, 5> projection_multipliers = {1.0, 1.0, 1.0, 1.0, 1.0};  // on in_proj's z, x, B, C, dt
  std::int64_t input_size = 0;                                               // of in_proj; 0: hidden_size
};

}  // namespace replayeval
