// The cells of a recall task by length and depth, whatever draws them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "reports/results.h"

namespace replayeval::reports {

struct RecallGrid {
  std::string task;
  std::vector<const RecallCell*> cells;
  std::vector<std::int64_t> lengths;          // ascending: the columns
  std::vector<std::optional<double>> depths;  // ascending, nullopt (anywhere) first: the rows

  std::size_t column_of(const RecallCell& cell) const;
  std::size_t row_of(const RecallCell& cell) const;
  std::vector<std::string> length_names() const, depth_names() const;
  // The largest delta of a cell with a signal, in points; at least ten, so that one answer of many looks like little.
  double reach() const;
};

// One for each task, in the order of their first cells. They point into the workload.
std::vector<RecallGrid> recall_grids(const Workload& workload);

std::string depth_name(const std::optional<double>& depth);  // "0.25", "anywhere"

}  // namespace replayeval::reports
