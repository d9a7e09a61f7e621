// How many tokens the harness lets a checkpoint see at once.
#pragma once

#include <cstdint>
#include <filesystem>

namespace replayeval::tasks {

// As resolve_max_length of the harness: n_positions, max_position_embeddings or n_ctx of config.json (of its
// text_config where there is one), else model_max_length of tokenizer_config.json, else 2048. Only what the files say
// counts: the harness also sees the defaults of transformers' configuration classes. Throws DataError naming file and
// key.
std::int64_t max_length_of(const std::filesystem::path& checkpoint_folder);

}  // namespace replayeval::tasks
