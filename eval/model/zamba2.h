// Zamba2: Mamba-2 layers, and before some of them one of a few shared attention-and-MLP blocks with adapters of its own
// for each use. Published as https://huggingface.co/Zyphra/Zamba2-2.7B; paper: arXiv 2411.15242.
#pragma once

#include <memory>

#include "eval/model/architecture.h"
#include "eval/model/model.h"

namespace replayeval {

Architecture describe_zamba2(const Checkpoint& checkpoint);
std::unique_ptr<Model> load_zamba2(const Checkpoint& checkpoint, const ModelOptions& options);

}  // namespace replayeval
