// The keys of routers that choose by sigmoid scores, out of groups of experts (DeepSeek-V3's).
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "eval/model/architecture.h"
#include "eval/model/config_reader.h"
#include "eval/model/router_form.h"

namespace replayeval {

// Names in config.json.
struct RouterKeys {
  std::string chosen = "num_experts_per_tok";
  std::string groups = "n_group", groups_chosen = "topk_group";
  std::string renormalise = "norm_topk_prob", scale = "routed_scaling_factor";
};

struct RouterDefaults {
  std::optional<std::int64_t> chosen;  // must be there if absent
  double scale = 1.0;
};

// Reads them into `form` and mixture.chosen; `experts` is the key that mixture.experts was read from. One group and
// renormalised weights where config.json does not say. Throws CheckpointError naming the key whose number leaves no
// choice.
void read_sigmoid_router(ConfigReader& reader, const std::string& experts, const RouterKeys& keys,
                         const RouterDefaults& defaults, MixtureShape& mixture, RouterForm& form);

}  // namespace replayeval
