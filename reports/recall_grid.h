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
  // Where the colours of differences end, in points: at the largest delta of a cell with a signal, and at no less than
  // ten or four times what one answer is worth in the cell with the fewest, so that one answer looks like little.
  double reach() const;
  // The difference that a cell's colour stands for, in points: no more than the palest quarter of reach() where the
  // interval holds zero, so that only what is beyond noise looks strong. nullopt without a delta.
  std::optional<double> shade(const RecallCell& cell, const std::string& arm) const;
  // "64 answers a cell", or by length where that differs: "answers a cell: 64 at 1,024 tokens, 4 at 8,192".
  std::string answers_text() const;
};

// One for each task, in the order of their first cells. They point into the workload.
std::vector<RecallGrid> recall_grids(const Workload& workload);

// How many answers stand behind a cell of the map.
std::int64_t answers_of(const RecallCell& cell);
std::string depth_name(const std::optional<double>& depth);  // "0.25", "anywhere"

}  // namespace replayeval::reports
