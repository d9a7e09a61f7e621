// The gate's outcome as workflow commands of GitHub Actions, which show as annotations of a job.
#pragma once

#include <string>

#include "reports/gate/gate.h"

namespace replayeval::reports::gate {

// "::error title=...::..." for what fails, "::warning ...::" for what warns; nothing for what passes.
std::string annotations(const Outcome& outcome);
std::string annotation_of_fault(const std::string& message);

}  // namespace replayeval::reports::gate
