// Bamba: Mamba-2 or attention with half-rotated heads, then a gated MLP.
// Published as https://huggingface.co/ibm-ai-platform/Bamba-9B-v2.
#pragma once

#include <memory>

#include "eval/model/architecture.h"
#include "eval/model/model.h"

namespace replayeval {

Architecture describe_bamba(const Checkpoint& checkpoint);
std::unique_ptr<Model> load_bamba(const Checkpoint& checkpoint, const ModelOptions& options);

}  // namespace replayeval
