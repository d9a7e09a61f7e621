// One workload of a run: what it measured, figure by figure and table by table.
#pragma once

#include <string>

#include "reports/html/figures.h"

namespace replayeval::reports::html {

std::string workload_section(const Shown& shown);

}  // namespace replayeval::reports::html
