// Kimi Linear: Kimi Delta Attention or latent attention without positions, then an MLP or a mixture of experts.
// Published as https://huggingface.co/moonshotai/Kimi-Linear-48B-A3B-Instruct.
#pragma once

#include <memory>

#include "eval/model/architecture.h"
#include "eval/model/model.h"

namespace replayeval {

Architecture describe_kimi_linear(const Checkpoint& checkpoint);
std::unique_ptr<Model> load_kimi_linear(const Checkpoint& checkpoint, const ModelOptions& options);

}  // namespace replayeval
