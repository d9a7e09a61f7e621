// Margins that hold whatever an arm does: they must not be taken for a pass.
#pragma once

#include <string>

#include "reports/gate/policy.h"
#include "reports/results.h"

namespace replayeval::reports::gate {

// "" where the rule's number in the workload could lie outside its margin. Otherwise one line that says why it cannot:
// no token ends a text, so that all are as long as the limit (of length and truncated); no value at all of such a
// metric is outside (a count is never below 0); or the baseline's share is so close to 0 or 1 that no arm can be so far
// beyond it as the margin allows. `name`: of the metric, without its group.
std::string why_it_cannot_fail(const Rule& rule, const Workload& workload, const std::string& baseline,
                               const std::string& name);

// The same where workloads are pooled: no value at all of such a metric is outside.
std::string why_no_value_is_outside(const Rule& rule, const std::string& name);

}  // namespace replayeval::reports::gate
