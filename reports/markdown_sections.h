// The sections of the Markdown report. Each returns "" when the results hold nothing for it.
#pragma once

#include <string>

#include "reports/figures.h"
#include "reports/results.h"

namespace replayeval::reports::markdown {

std::string compared(const Results& results, const Workload& workload);  // the arms, the text, the mode
std::string verdicts(const Results& results, const Workload& workload);
std::string summary(const Results& results, const Workload& workload);
std::string deltas(const Results& results, const Workload& workload);  // every delta with interval and method
std::string divergence(const Results& results, const Workload& workload);
std::string positions(const Results& results, const Workload& workload);
std::string generation(const Results& results, const Workload& workload);   // degeneration and agreement
std::string recall(const Results& results, const Workload& workload);       // pooled, and by length and depth
std::string churn(const Results& results, const Workload& workload);        // what was compared, and what it found
std::string state_error(const Results& results, const Workload& workload);  // three depths, a row a layer and position
std::string task(const Results& results, const Workload& workload);         // a downstream task's metrics and deltas
std::string storage(const Results& results, const Workload& workload);
std::string speed(const Results& results, const Workload& workload);  // seconds, tokens/s, bytes, kernel times
std::string figures(const Workload& workload, const Figures& drawn);
std::string provenance(const Results& results);

}  // namespace replayeval::reports::markdown
