// qwen3_next: Gated DeltaNet and gated attention, experts or an MLP behind each. Facts: transformers 5.17,
// modeling_qwen3_next.py.
#pragma once

#include <memory>

#include "eval/model/architecture.h"
#include "eval/model/model.h"

namespace replayeval {

Architecture describe_qwen3_next(const Checkpoint& checkpoint);
std::unique_ptr<Model> load_qwen3_next(const Checkpoint& checkpoint, const ModelOptions& options);

}  // namespace replayeval
