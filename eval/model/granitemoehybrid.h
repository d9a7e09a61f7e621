// Granite 4: Mamba-2 or attention, then a mixture of experts, a shared MLP, or both; muP multipliers throughout.
// Published as https://huggingface.co/ibm-granite/granite-4.0-h-tiny.
#pragma once

#include <memory>

#include "eval/model/architecture.h"
#include "eval/model/model.h"

namespace replayeval {

Architecture describe_granitemoehybrid(const Checkpoint& checkpoint);
std::unique_ptr<Model> load_granitemoehybrid(const Checkpoint& checkpoint, const ModelOptions& options);

}  // namespace replayeval
