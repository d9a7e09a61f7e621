#include "reports/recall_grid.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
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
  constexpr double least = 10.0, answers = 4.0;
  double reach = least;
  for (const RecallCell* cell : cells) {
    if (!cell->signal) continue;
    for (const auto& [arm, delta] : cell->delta) reach = std::max(reach, 100.0 * std::abs(delta.value));
    if (const std::int64_t n = answers_of(*cell); n > 0)
      reach = std::max(reach, std::min(100.0, answers * 100.0 / static_cast<double>(n)));
  }
  return reach;
}

std::optional<double> RecallGrid::shade(const RecallCell& cell, const std::string& arm) const {
  const auto found = cell.delta.find(arm);
  if (found == cell.delta.end()) return std::nullopt;
  const Delta& delta = found->second;
  const double points = 100.0 * delta.value, palest = reach() / 4.0;
  const bool beyond_noise = delta.low && delta.high && (*delta.low > 0.0 || *delta.high < 0.0);
  return beyond_noise ? points : std::clamp(points, -palest, palest);
}

std::string RecallGrid::answers_text() const {
  std::map<std::int64_t, std::set<std::int64_t>> counts;  // by length
  std::set<std::set<std::int64_t>> different;
  for (const RecallCell* cell : cells) counts[cell->length].insert(answers_of(*cell));
  const auto range = [](const std::set<std::int64_t>& of) {
    return *of.begin() == *of.rbegin() ? count_text(*of.begin())
                                       : fmt::format("{} to {}", count_text(*of.begin()), count_text(*of.rbegin()));
  };
  std::string text;
  for (const auto& [length, answers] : counts) {
    different.insert(answers);
    text += fmt::format("{}{} at {}{}", text.empty() ? "" : ", ", range(answers), count_text(length),
                        text.empty() ? " tokens" : "");
  }
  if (different.size() > 1) return "answers a cell: " + text;
  return range(*different.begin()) +
         (*different.begin() == std::set<std::int64_t>{1} ? " answer a cell" : " answers a cell");
}

std::vector<RecallGrid> recall_grids(const Workload& workload) {
  std::vector<RecallGrid> grids;
  std::set<std::string> seen;
  for (const RecallCell& cell : workload.recall)
    if (seen.insert(cell.task).second) grids.push_back(grid_of(workload, cell.task));
  return grids;
}

std::int64_t answers_of(const RecallCell& cell) {
  for (const auto& [arm, accuracy] : cell.accuracy)
    if (accuracy.n) return *accuracy.n;
  return cell.documents;
}

std::string depth_name(const std::optional<double>& depth) { return depth ? fmt::format("{:g}", *depth) : "anywhere"; }

}  // namespace replayeval::reports
