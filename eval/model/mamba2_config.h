// config.json of a mamba2 folder.
#pragma once

#include "eval/model/architecture.h"
#include "eval/model/mamba_keys.h"

namespace replayeval {

struct Mamba2Config {
  Architecture architecture;
  bool use_bias = false;  // of in_proj and out_proj
  bool use_conv_bias = true;
  bool residual_in_fp32 = true;
  bool tie_word_embeddings = false;
  double norm_eps = 1e-5;
  TimeStepLimit time_step_limit;
};

// Throws CheckpointError naming file, key and expectation.
Mamba2Config read_mamba2_config(const Checkpoint& checkpoint);

}  // namespace replayeval
