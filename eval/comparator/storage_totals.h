// Counts of odd stored values over several caches.
#pragma once

#include <vector>

#include "eval/model/model.h"

namespace replayeval {

using StorageTotals = std::vector<std::vector<StorageCounts>>;  // [arms][mixers]

StorageTotals counts_of(const DecodeCache& cache);
// Totals without mixers take the shape of `more`, and `more` without mixers adds nothing; otherwise both have one
// shape.
void add_counts(StorageTotals& totals, const StorageTotals& more);
// What came after `before`, which has the shape of `now`.
StorageTotals counts_since(StorageTotals now, const StorageTotals& before);

}  // namespace replayeval
