// sentencepiece models (tokenizer.model).
#pragma once

#include <filesystem>
#include <memory>

#include "datasets/tokenizer.h"

namespace replayeval::datasets {

// Throws DataError naming the file: unreadable, or not a sentencepiece model.
std::unique_ptr<Tokenizer> load_sentencepiece(const std::filesystem::path& file);

}  // namespace replayeval::datasets
