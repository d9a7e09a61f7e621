// config.json of a qwen3_next folder, as the published modelling code reads it.
#pragma once

#include "eval/model/qwen_hybrid_keys.h"

namespace replayeval {

// Throws CheckpointError naming file, key and expectation.
QwenHybridConfig read_qwen3_next_config(const Checkpoint& checkpoint);

}  // namespace replayeval
