// What a spec must keep to, whether it was parsed or made in code.
#pragma once

#include <string>

#include "datasets/recall/recall.h"

namespace replayeval::datasets::recall {

// Throws DataError, `place` first: "recall: questions: found 20, expected 1 … 16".
void check_spec(const RecallSpec& spec, const std::string& place);

}  // namespace replayeval::datasets::recall
