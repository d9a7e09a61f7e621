// What a spec must keep to, whether it was parsed or made in code.
#pragma once

#include <cmath>
#include <cstdint>
#include <string>

#include "datasets/recall/recall.h"

namespace replayeval::datasets::recall {

// What of a depth decides the items: millionths.
inline std::int64_t depth_number(double depth) { return std::llround(depth * 1e6); }

// Throws DataError, `place` first: "recall: questions: found 20, expected 1 … 16".
void check_spec(const RecallSpec& spec, const std::string& place);

}  // namespace replayeval::datasets::recall
