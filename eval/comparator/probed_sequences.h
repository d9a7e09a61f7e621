// The sequences of a workload whose states are compared under all arms.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "eval/comparator/perplexity.h"

namespace replayeval {

// Token ids, each sequence at least as long as the last position of the workload's state_error.
using ProbedSequences = std::vector<std::vector<std::int64_t>>;

// Decodes them one after the other and puts their pooled state errors into `result`, with their number in its data.
// Throws Interrupted when asked to stop.
void probe_states(const RunContext& context, const WorkloadConfig& workload, const ProbedSequences& sequences,
                  reports::Workload& result);

// Where no sequence is long enough: ConfigError naming the workload. `what`: "window", "prompt".
[[noreturn]] void refuse_short_sequences(const RunContext& context, const WorkloadConfig& workload,
                                         const std::string& what, std::int64_t longest);

}  // namespace replayeval
