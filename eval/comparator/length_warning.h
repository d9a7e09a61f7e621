// Sequences longer than a checkpoint promises to understand: they are decoded, and said to be what they are.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "eval/model/model.h"

namespace replayeval {

// Of sequences of so many tokens; nullopt where the model's max_positions() are enough.
std::optional<std::string> length_warning(const Model& model, std::int64_t tokens);

}  // namespace replayeval
