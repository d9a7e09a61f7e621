// The --ids files: a JSON list of token ids.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

namespace replayeval {

// Throws std::runtime_error naming file, place and expectation when the file is missing, is not a JSON list of
// integers, is empty, or holds an id outside 0..vocab_size-1.
std::vector<std::int64_t> read_token_ids(const std::filesystem::path& file, std::int64_t vocab_size);

}  // namespace replayeval
