// The tables that a paper takes from a run.
#pragma once

#include <vector>

#include "reports/latex/markup.h"
#include "reports/results.h"

namespace replayeval::reports::latex {

// Quality, state error and speed of each workload, what its kind has beside them (tasks, recall, generation, churn, a
// stored baseline), and all tasks together. An arm of the baseline's arithmetic is marked A/A; captions say what was
// compared over how much, and whether an A/A control was among the arms.
std::vector<PaperTable> paper_tables(const Results& results);

}  // namespace replayeval::reports::latex
