// The summary on the terminal: what was compared, an arm a row, a sentence a verdict.
#pragma once

#include <cstdio>
#include <string>

#include "reports/results.h"

namespace replayeval::reports {

struct TableOptions {
  bool colour = false;
  int width = 100;  // columns; where the table would be wider, it drops its least important columns
};

// Colour and width fit for `stream`: colour only on a terminal, never when NO_COLOR is set and not empty.
TableOptions table_options_for(std::FILE* stream);

// All workloads of the results, ready to print (UTF-8, ends with a newline).
std::string summary_table(const Results& results, const TableOptions& options);

}  // namespace replayeval::reports
