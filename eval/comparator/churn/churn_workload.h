// The churn workload: what a server does to sequences must not change what they say (churn_script.h). Mixers, given
// equal inputs, give outputs and states equal to the bit; a saved prefix comes back to the bit; a whole model's
// log-probabilities stay as close as the exact arm's own across batch sizes, measured in the same run.
#pragma once

#include "eval/comparator/perplexity.h"
#include "reports/results.h"

namespace replayeval {

// Throws ConfigError on a scripted event that cannot be, Interrupted between actions when asked to stop (the workload
// then begins again), std::runtime_error on outputs that are not finite.
reports::Workload run_churn(const RunContext& context, const WorkloadConfig& workload);

// The exact arm whose deviation bounds an arm's: its state is as narrow as the narrowest that the arm stores.
Arm churn_control(const Arm& arm);

}  // namespace replayeval
