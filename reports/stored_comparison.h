// A run against what an earlier one kept of the same workload (a portable baseline), as tables.
#pragma once

#include <string>

#include "reports/results.h"
#include "reports/text_table.h"

namespace replayeval::reports {

// Which earlier run: "the stored baseline of 1a2b3c4 (2026-11-30, bfloat16 hidden states)". Empty where there is none.
std::string stored_baseline_line(const Workload& workload);

// How well hidden states say what was said then: rounding them shows in every number of the comparison. Empty without.
std::string stored_rounding_line(const Workload& workload);

// A row an arm. Without hidden states there are no columns of divergence.
TextTable stored_comparison_table(const Workload& workload);

}  // namespace replayeval::reports
