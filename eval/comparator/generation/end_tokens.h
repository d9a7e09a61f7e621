// The tokens that end a checkpoint's sequences.
#pragma once

#include <cstdint>
#include <filesystem>
#include <set>

#include "datasets/tokenizer.h"

namespace replayeval {

// eos_token_id (a number or a list) of generation_config.json, or where that file is missing or says none of
// config.json or its text_config; and the tokenizer's eos, as servers and lm-evaluation-harness end at either. Throws
// CheckpointError naming file and key on one that is no id of the vocabulary.
std::set<std::int32_t> end_tokens_of(const std::filesystem::path& checkpoint_folder,
                                     const datasets::Tokenizer* tokenizer, std::int64_t vocab_size);

}  // namespace replayeval
