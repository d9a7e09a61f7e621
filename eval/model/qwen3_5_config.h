// config.json of the language model of a qwen3_5 folder, as the published modelling code reads it.
#pragma once

#include "eval/model/qwen_hybrid_keys.h"

namespace replayeval {

// Of types whose language model may stand in a folder of its own or wrapped with an image encoder: calls `read` on the
// reader that has the language model's keys (text_config, or the whole file where there is none) and accounts for the
// others. The architecture's model_type is config.json's. Throws CheckpointError naming file, key and expectation.
using ReadLanguageModel = void (*)(ConfigReader& reader, QwenHybridConfig& config);
QwenHybridConfig read_wrapped_qwen(const Checkpoint& checkpoint, ReadLanguageModel read);

// Throws CheckpointError naming file, key and expectation.
QwenHybridConfig read_qwen3_5_config(const Checkpoint& checkpoint);

}  // namespace replayeval
