// The sections that speak of one workload each: of a single run one after the other, of several runs in a group a run.
#pragma once

#include <vector>

#include "reports/findings.h"
#include "reports/html/page.h"

namespace replayeval::reports::html {

// Those of one checkpoint together, in the order of the first of each.
std::vector<Run> by_checkpoint(std::vector<Run> runs);

// Of several runs each is a section in the group of its checkpoint, with a part a workload.
std::vector<PageSection> run_sections(const std::vector<Run>& runs, const std::vector<Finding>& findings);

}  // namespace replayeval::reports::html
