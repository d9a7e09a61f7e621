// The Qwen hybrids: in each layer a Gated DeltaNet or gated attention with q/k norms, then experts or an MLP, each
// behind a zero-centred norm. What differs between the types is how a DeltaNet's input projections are stored.
#pragma once

#include <memory>
#include <string>

#include "eval/model/hybrid_builder.h"
#include "eval/model/qwen_hybrid_keys.h"

namespace replayeval {

// The rows of a DeltaNet's input projections under `name.`, in the mixer's order q | k | v | z | b | f.
using LoadDeltaInput = Linear (*)(HybridBuilder& builder, const std::string& name);

// Loads the whole model; tensors are looked up behind the first of `prefixes` that the embeddings lie under.
std::unique_ptr<Model> load_qwen_hybrid(const Checkpoint& checkpoint, const ModelOptions& options,
                                        const QwenHybridConfig& config, const std::vector<std::string>& prefixes,
                                        LoadDeltaInput load_input);

}  // namespace replayeval
