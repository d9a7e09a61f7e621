// The gate's outcome as JSON (reports/schema/gate.schema.json).
#pragma once

#include <nlohmann/json.hpp>

#include "reports/gate/gate.h"

namespace replayeval::reports::gate {

// Checked against the schema; throws ResultsError where it does not match.
nlohmann::json to_json(const Outcome& outcome);

// Throws ResultsError with the first fault. `place` goes before messages.
void validate_gate(const nlohmann::json& outcome, const std::string& place = "gate");

}  // namespace replayeval::reports::gate
