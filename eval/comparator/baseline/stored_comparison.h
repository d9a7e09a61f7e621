// A run's arms against those that a portable baseline keeps, as results hold it.
#pragma once

#include "eval/comparator/baseline/stored_baseline.h"
#include "eval/comparator/perplexity.h"
#include "eval/comparator/token_records.h"
#include "reports/results.h"

namespace replayeval {

// Fills result.against and data["against"]. records: of the whole workload, in text order.
void compare_with_stored(const RunContext& context, const TokenRecords& records, const StoredWorkload& stored,
                         reports::Workload& result);

}  // namespace replayeval
