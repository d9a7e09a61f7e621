// qwen3_5 and qwen3_5_text: Gated DeltaNet and gated attention with an MLP behind each; the language model of a folder
// that may hold an image encoder beside it. Facts: transformers 5.17, modeling_qwen3_5.py.
#pragma once

#include <memory>

#include "eval/model/architecture.h"
#include "eval/model/model.h"
#include "eval/model/qwen_hybrid.h"

namespace replayeval {

Architecture describe_qwen3_5(const Checkpoint& checkpoint);
std::unique_ptr<Model> load_qwen3_5(const Checkpoint& checkpoint, const ModelOptions& options);

// Of folders that may be wrapped: q | k | v, z, b and a are projections of their own.
std::unique_ptr<Model> load_wrapped_qwen(const Checkpoint& checkpoint, const ModelOptions& options,
                                         const QwenHybridConfig& config);

}  // namespace replayeval
