// config.json of a kimi_linear folder, as the published modelling code and transformers read it.
#pragma once

#include <vector>

#include "eval/model/architecture.h"
#include "eval/model/latent_attention_form.h"
#include "eval/model/router_form.h"

namespace replayeval {

struct KimiLinearConfig {
  Architecture architecture;  // its layers say which mixer a layer has
  LatentAttentionForm attention;
  std::vector<bool> sparse;  // layer by layer: a mixture of experts instead of an MLP
  RouterForm router;
  double norm_eps = 1e-5;  // of all norms but those inside attention
};

// Throws CheckpointError naming file, key and expectation.
KimiLinearConfig read_kimi_linear_config(const Checkpoint& checkpoint);

}  // namespace replayeval
