// The architectures' own loaders, by the model_type of config.json.
#pragma once

#include <memory>

#include "eval/model/model.h"

namespace replayeval {

// Puts everything where `options.placement` has it, or else on the one device. Throws CheckpointError.
std::unique_ptr<Model> load_registered(const Checkpoint& checkpoint, const ModelOptions& options);

}  // namespace replayeval
