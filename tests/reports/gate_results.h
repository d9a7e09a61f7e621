// Results that agree with themselves, for tests of the gate: the sample's perplexity workload, two tasks and their
// pool.
#pragma once

#include "reports/results.h"

namespace replayeval::reports {

Results gate_results();

}  // namespace replayeval::reports
