// The schema of results.json as it was when this program was built.
#pragma once

namespace replayeval::reports {

const char* results_schema_text();  // JSON Schema, draft 7

}  // namespace replayeval::reports
