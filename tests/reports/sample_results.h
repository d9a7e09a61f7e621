// Results as a run of the demo's six arms would leave them, with numbers that tests know.
#pragma once

#include "reports/results.h"

namespace replayeval::reports {

Results sample_results();

}  // namespace replayeval::reports
