// The schemas of results.json and of the gate's output as they were when this program was built.
#pragma once

namespace replayeval::reports {

const char* results_schema_text();  // JSON Schema, draft 7
const char* gate_schema_text();

}  // namespace replayeval::reports
