// config.json of a granitemoehybrid folder, as the published modelling code reads it.
#pragma once

#include <cstdint>
#include <optional>

#include "eval/model/architecture.h"
#include "eval/model/mamba_keys.h"
#include "eval/model/rotary_config.h"

namespace replayeval {

struct GraniteMoeHybridConfig {
  Architecture architecture;  // mixture.experts is 0 in dense models
  MambaKeys mamba;
  std::optional<RotaryConfig> rotary;  // none: attention has no positions
  bool attention_bias = false;
  bool tie_word_embeddings = false;
  double norm_eps = 1e-6;
  double embedding_multiplier = 1.0, residual_multiplier = 1.0;
  double attention_multiplier = 1.0;  // the scale of the scores
  double logits_scaling = 1.0;        // logits are divided by it
};

// Throws CheckpointError naming file, key and expectation.
GraniteMoeHybridConfig read_granitemoehybrid_config(const Checkpoint& checkpoint);

}  // namespace replayeval
