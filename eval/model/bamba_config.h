// config.json of a bamba folder, as the published modelling code reads it.
#pragma once

#include "eval/model/architecture.h"
#include "eval/model/mamba_keys.h"
#include "eval/model/rotary_config.h"

namespace replayeval {

struct BambaConfig {
  Architecture architecture;
  MambaKeys mamba;
  RotaryConfig rotary;
  bool attention_bias = false, mlp_bias = false;
  bool tie_word_embeddings = false;
  double norm_eps = 1e-5;
};

// Throws CheckpointError naming file, key and expectation.
BambaConfig read_bamba_config(const Checkpoint& checkpoint);

}  // namespace replayeval
