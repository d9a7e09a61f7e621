// {"String": "..."} or {"Regex": "..."}, as several parts of a tokenizer.json have it.
#pragma once

#include "datasets/json_node.h"
#include "datasets/regex.h"

namespace replayeval::datasets {

// Throws DataError naming the place: neither of the two, or a pattern that cannot be translated or compiled.
Regex regex_of(const JsonNode& node);

}  // namespace replayeval::datasets
