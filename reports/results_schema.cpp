#include "reports/results_schema.h"

#include "reports/json_schema.h"
#include "reports/results_io.h"

namespace replayeval::reports {

void validate_results(const nlohmann::json& results, const std::string& place) {
  static const JsonSchema schema(results_schema_text());
  schema.validate(results, place);
}

}  // namespace replayeval::reports
