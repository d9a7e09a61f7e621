// Several tasks taken together as tables: a row a task, then the pooled ones.
#pragma once

#include <string>

#include "reports/results.h"
#include "reports/text_table.h"

namespace replayeval::reports {

TextTable task_family_table(const Results& results);
// What as many documents can show, a line a metric and arm.
std::string task_family_power(const Results& results);

}  // namespace replayeval::reports
