// What of a config's workloads a result does not hold: `run --only` computes parts.
#pragma once

#include <string>
#include <vector>

#include "reports/results.h"

namespace replayeval::reports {

std::vector<std::string> missing_workloads(const Results& results);  // names, in the config's order

}  // namespace replayeval::reports
