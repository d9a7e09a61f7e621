// Recall accuracy by length and depth as a heat map: a panel an arm, the baseline's accuracy and the others' deltas.
#pragma once

#include <vector>

#include "reports/figure_files.h"
#include "reports/results.h"

namespace replayeval::reports {

// One for each task of the workload, in the order of their first cells; none where it is no recall workload.
std::vector<FigureFiles> recall_heatmaps(const Results& results, const Workload& workload);

}  // namespace replayeval::reports
