// What all runs say together: the verdict, how many comparisons came out how, and the findings one by one.
#pragma once

#include <string>
#include <vector>

#include "reports/findings.h"

namespace replayeval::reports::html {

// One sentence over all of them, in the tone of what was found; `id` may be "".
std::string verdict_line(const std::vector<Finding>& findings, const std::string& id);
// A table a run, a row a workload: how many comparisons came out how. "" of a single run, whose findings are few.
std::string summary_section(const std::vector<Run>& runs, const std::vector<Finding>& findings);
// A list a workload. Of several runs those that are beyond noise stand first, and the lists behind a click.
std::string findings_section(const std::vector<Run>& runs, const std::vector<Finding>& findings);
// "6 arms: 2 identical, 4 no measurable change"; "" where nothing was compared.
std::string counts_line(const std::vector<Finding>& findings, const std::string& run, const std::string& workload);

}  // namespace replayeval::reports::html
