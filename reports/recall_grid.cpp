#include "reports/recall_grid.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "reports/numbers.h"

namespace replayeval::reports {
namespace {

RecallGrid grid_of(const Workload& workload, const std::string& task) {
  RecallGrid grid{.task = task, .cells = {}, .lengths = {}, .depths = {}};
  std::set<std::int64_t> lengths;
  std::set<std::optional<double>> depths;
  for (const RecallCell& cell : workload.recall) {
    if (cell.task != task) continue;
    grid.cells.push_back(&cell);
    lengths.insert(cell.length);
    depths.insert(cell.depth);
  }
  grid.lengths.assign(lengths.begin(), lengths.end());
  grid.depths.assign(depths.begin(), depths.end());
  return grid;
}

template <typename Value>
std::size_t place_of(const std::vector<Value>& values, const Value& value) {
  return static_cast<std::size_t>(std::find(values.begin(), values.end(), value) - values.begin());
}

}  // namespace

std::size_t RecallGrid::column_of(const RecallCell& cell) const { return place_of(lengths, cell.length); }
std::size_t RecallGrid::row_of(const RecallCell& cell) const { return place_of(depths, cell.depth); }

std::vector<std::string> RecallGrid::length_names() const {
  std::vector<std::string> names;
  for (const std::int64_t length : lengths) names.push_back(count_text(length));
  return names;
}

std::vector<std::string> RecallGrid::depth_names() const {
  std::vector<std::string> names;
  for (const auto& depth : depths) names.push_back(depth_name(depth));
  return names;
}

double RecallGrid::reach() const {
  double reach = 10.0;
  for (const RecallCell* cell : cells)
    for (const auto& [arm, delta] : cell->delta)
      if (cell->signal) reach = std::max(reach, 100.0 * std::abs(delta.value));
  return reach;
}

std::vector<RecallGrid> recall_grids(const Workload& workload) {
  std::vector<RecallGrid> grids;
  std::set<std::string> seen;
  for (const RecallCell& cell : workload.recall)
    if (seen.insert(cell.task).second) grids.push_back(grid_of(workload, cell.task));
  return grids;
}

std::string depth_name(const std::optional<double>& depth) { return depth ? fmt::format("{:g}", *depth) : "anywhere"; }

}  // namespace replayeval::reports
