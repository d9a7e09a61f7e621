// config.json of an olmo_hybrid folder, as the published modelling code reads it.
#pragma once

#include <optional>

#include "eval/model/architecture.h"
#include "eval/model/rotary_config.h"

namespace replayeval {

struct OlmoHybridConfig {
  Architecture architecture;
  std::optional<RotaryConfig> rotary;  // absent where config.json says rope_theta: null
  bool allow_neg_eigval = true;
  bool attention_bias = false;  // of all four projections
  bool tie_word_embeddings = false;
  double norm_eps = 1e-6;  // of all norms but the mixers'
};

// Throws CheckpointError naming file, key and expectation.
OlmoHybridConfig read_olmo_hybrid_config(const Checkpoint& checkpoint);

}  // namespace replayeval
