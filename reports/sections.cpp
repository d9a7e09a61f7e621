#include "reports/sections.h"

namespace replayeval::reports::sections {

std::vector<Section> of_kind(const std::string& workload_kind) {
  if (workload_kind == "recall") return {verdicts, recall, compared, deltas, state_error, storage, speed};
  if (workload_kind == "task") return {verdicts, task, generation, compared, deltas, state_error, storage, speed};
  if (workload_kind == "churn") return {compared, churn};
  if (workload_kind == "generation") return {verdicts, generation, compared, deltas, storage, speed};
  return {verdicts, summary, compared, deltas, divergence, against, positions, state_error, storage, speed};
}

}  // namespace replayeval::reports::sections
