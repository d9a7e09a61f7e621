#include "reports/missing_workloads.h"

#include <algorithm>

namespace replayeval::reports {

std::vector<std::string> missing_workloads(const Results& results) {
  std::vector<std::string> missing;
  if (!results.config.is_object() || !results.config.contains("workloads")) return missing;
  for (const nlohmann::json& workload : results.config.at("workloads")) {
    const std::string name = workload.value("name", "");
    if (std::none_of(results.workloads.begin(), results.workloads.end(),
                     [&](const Workload& done) { return done.name == name; }))
      missing.push_back(name);
  }
  return missing;
}

}  // namespace replayeval::reports
