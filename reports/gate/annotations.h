// The gate's outcome as workflow commands of GitHub Actions, which show as annotations of a job.
#pragma once

#include <cstddef>
#include <string>

#include "reports/gate/gate.h"

namespace replayeval::reports::gate {

// GitHub shows no more of one level in a step (docs.github.com, "Workflow commands": 10 warnings and 10 errors).
inline constexpr std::size_t most_annotations = 10;

// "::error title=...::..." for what fails, "::warning ...::" for what warns, worst first; nothing for what passes.
// Where there are more than GitHub shows, the last says how many.
std::string annotations(const Outcome& outcome);
std::string annotation_of_fault(const std::string& message);

}  // namespace replayeval::reports::gate
