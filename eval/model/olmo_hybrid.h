// OLMo Hybrid: Gated DeltaNet between pre-norms or attention before post-norms, then a gated MLP.
// Published as https://huggingface.co/allenai/Olmo-Hybrid-7B.
#pragma once

#include <memory>

#include "eval/model/architecture.h"
#include "eval/model/model.h"

namespace replayeval {

Architecture describe_olmo_hybrid(const Checkpoint& checkpoint);
std::unique_ptr<Model> load_olmo_hybrid(const Checkpoint& checkpoint, const ModelOptions& options);

}  // namespace replayeval
