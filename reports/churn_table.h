// What a churn workload found, as tables: by arm for a terminal, by event and arm for a report.
#pragma once

#include <string>

#include "reports/results.h"
#include "reports/text_table.h"

namespace replayeval::reports {

// A row an arm and level, over all events and batches.
TextTable churn_table(const Workload& workload);

// "320 sequences in batches of 255, 256, 257; 4 mixers"; empty where the results do not say.
std::string churn_line(const Workload& workload);

// How many checks do not hold.
std::int64_t broken_checks(const Workload& workload);

// One line: "all 72 checks hold", or how many do not and which is the first.
std::string churn_verdict(const Workload& workload);

}  // namespace replayeval::reports
