// What a paired perplexity delta says, in plain words.
#pragma once

#include <string>

#include "reports/results.h"

namespace replayeval::reports {

// One sentence a compared arm, e.g. "no measurable change: ΔPPL +0.00001 % [-0.00002, +0.00004] (95 %)".
std::string verdict(const Results& results, const Workload& workload, const std::string& arm);

}  // namespace replayeval::reports
