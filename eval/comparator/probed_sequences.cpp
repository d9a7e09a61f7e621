#include "eval/comparator/probed_sequences.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include "eval/comparator/interrupt.h"
#include "eval/comparator/progress.h"
#include "eval/comparator/state_probe.h"

namespace replayeval {

void probe_states(const RunContext& context, const WorkloadConfig& workload, const ProbedSequences& sequences,
                  reports::Workload& result) {
  const StateErrorConfig& config = *workload.state_error;
  StateProbe states(context.model, context.arms, context.baseline, config.positions, config.depths);
  Progress progress(workload.name + ", state error", static_cast<std::int64_t>(sequences.size()), context.quiet);
  progress.start();
  for (const std::vector<std::int64_t>& sequence : sequences) {
    stop_if_asked();
    states.add(at::tensor(sequence, at::kLong).unsqueeze(0));
    progress.add(1);
  }
  progress.finish();
  result.state_errors = states.rows();
  result.data["state_error_sequences"] = sequences.size();
}

void refuse_short_sequences(const RunContext& context, const WorkloadConfig& workload, const std::string& what,
                            std::int64_t longest) {
  throw ConfigError(fmt::format(
      "{}: workload '{}': state_error looks at position {}, but the longest {} has {} tokens; expected positions "
      "up to {}, or longer documents",
      context.config.file.string(), workload.name, workload.state_error->positions.back(), what, longest, longest));
}

}  // namespace replayeval
