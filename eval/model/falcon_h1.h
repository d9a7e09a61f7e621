// Falcon-H1: attention beside a Mamba-2 mixer in every layer, then an MLP, with fixed multipliers in many places.
// Published as https://huggingface.co/tiiuae/Falcon-H1-1.5B-Base; paper: arXiv 2507.22448.
#pragma once

#include <memory>

#include "eval/model/architecture.h"
#include "eval/model/model.h"

namespace replayeval {

Architecture describe_falcon_h1(const Checkpoint& checkpoint);
std::unique_ptr<Model> load_falcon_h1(const Checkpoint& checkpoint, const ModelOptions& options);

}  // namespace replayeval
