// config.json of a zamba2 folder.
#pragma once

#include <optional>

#include "eval/model/activation_name.h"
#include "eval/model/architecture.h"
#include "eval/model/mamba_keys.h"
#include "eval/model/rotary_config.h"

namespace replayeval {

struct Zamba2Config {
  Architecture architecture;  // mamba2_attention: a layer with a shared block before its mixer
  std::int64_t num_mem_blocks = 1;
  std::int64_t adapter_rank = 128;
  bool use_shared_attention_adapter = false;
  bool add_bias_linear = false;  // of in_proj, out_proj and the shared MLPs
  Activation hidden_act = Activation::gelu;
  std::optional<RotaryConfig> rotary;  // use_mem_rope
  bool tie_word_embeddings = true;
  double norm_eps = 1e-5;
  // The published code clamps dt to time_step_limit, (0, inf) in the published folders; transformers floors it at
  // time_step_min (see DtFloor).
  TimeStepLimit time_step_limit;
  double time_step_min = 0.001;
};

// Throws CheckpointError naming file, key and expectation.
Zamba2Config read_zamba2_config(const Checkpoint& checkpoint);

}  // namespace replayeval
