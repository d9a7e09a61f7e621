// Several tasks taken together as tables: a row a task, then the pooled ones.
#pragma once

#include <string>

#include "reports/document.h"
#include "reports/results.h"
#include "reports/text_table.h"

namespace replayeval::reports {

TextTable task_family_table(const Results& results);
// For a page's width: a row a metric and arm, the deltas of the tasks (where there are few) and of all across.
Table task_families_by_arm(const Results& results);
// "animals (600 documents), cloze (1,500 documents)": of all families' tasks.
std::string task_sizes(const Results& results);
// What as many documents can show, a line a metric and arm.
std::string task_family_power(const Results& results);

}  // namespace replayeval::reports
