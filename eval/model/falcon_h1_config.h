// config.json of a falcon_h1 folder.
#pragma once

#include <array>

#include "eval/model/architecture.h"
#include "eval/model/mamba_keys.h"
#include "eval/model/rotary_config.h"

namespace replayeval {

struct FalconH1Config {
  Architecture architecture;
  RotaryConfig rotary;
  bool attention_bias = false, mlp_bias = false;
  bool mamba_proj_bias = false;  // of in_proj
  bool projectors_bias = false;  // of out_proj
  bool mamba_conv_bias = true;
  bool mamba_rms_norm = false;  // else the mixer's output is only gated
  bool mamba_norm_before_gate = true;
  bool tie_word_embeddings = false;
  double norm_eps = 1e-5;
  TimeStepLimit time_step_limit;
  double embedding_multiplier = 1.0, lm_head_multiplier = 1.0;
  double attention_in_multiplier = 1.0, attention_out_multiplier = 1.0, key_multiplier = 1.0;
  double ssm_in_multiplier = 1.0, ssm_out_multiplier = 1.0;
  std::array<double, 5> ssm_multipliers = {};  // on in_proj's z, x, B, C, dt
  std::array<double, 2> mlp_multipliers = {};  // on the gate, on the output
};

// Throws CheckpointError naming file, key and expectation.
FalconH1Config read_falcon_h1_config(const Checkpoint& checkpoint);

}  // namespace replayeval
