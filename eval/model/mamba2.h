// Mamba-2 without attention, as transformers and Mistral publish it. Paper: arXiv 2405.21060.
#pragma once

#include <memory>

#include "eval/model/architecture.h"
#include "eval/model/model.h"

namespace replayeval {

Architecture describe_mamba2(const Checkpoint& checkpoint);
std::unique_ptr<Model> load_mamba2(const Checkpoint& checkpoint, const ModelOptions& options);

}  // namespace replayeval
