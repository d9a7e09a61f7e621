// Nemotron-H: Mamba-2, grouped-query attention without positions, squared-ReLU MLPs and mixtures of them, in any order.
// Published as https://huggingface.co/nvidia/Nemotron-H-8B-Base-8K; paper: arXiv 2504.03624.
#pragma once

#include <memory>

#include "eval/model/architecture.h"
#include "eval/model/model.h"

namespace replayeval {

Architecture describe_nemotron_h(const Checkpoint& checkpoint);
std::unique_ptr<Model> load_nemotron_h(const Checkpoint& checkpoint, const ModelOptions& options);

}  // namespace replayeval
