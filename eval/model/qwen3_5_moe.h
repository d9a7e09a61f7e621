// qwen3_5_moe and qwen3_5_moe_text: as qwen3_5, with experts in place of the MLPs. Facts: transformers 5.17,
// modeling_qwen3_5_moe.py.
#pragma once

#include <memory>

#include "eval/model/architecture.h"
#include "eval/model/model.h"

namespace replayeval {

Architecture describe_qwen3_5_moe(const Checkpoint& checkpoint);
std::unique_ptr<Model> load_qwen3_5_moe(const Checkpoint& checkpoint, const ModelOptions& options);

}  // namespace replayeval
