// config.json of a nemotron_h folder, as the published modelling code reads it.
#pragma once

#include <vector>

#include "eval/model/architecture.h"
#include "eval/model/mamba_keys.h"
#include "eval/model/router_form.h"

namespace replayeval {

struct NemotronHConfig {
  Architecture architecture;
  bool use_bias = false;  // of in_proj and out_proj
  bool use_conv_bias = true;
  bool mlp_bias = false;  // of MLP layers, shared experts and latent projections, not of routed experts
  bool tie_word_embeddings = false;
  bool residual_in_fp32 = false;
  double norm_eps = 1e-5;
  // The published code clamps dt to time_step_limit, (0, inf) unless config.json says otherwise; transformers ignores
  // that key and floors dt at time_step_min (see DtFloor).
  TimeStepLimit time_step_limit;
  double time_step_min = 0.001;
  RouterForm router;
};

// Throws CheckpointError naming file, key and expectation.
NemotronHConfig read_nemotron_h_config(const Checkpoint& checkpoint);

}  // namespace replayeval
