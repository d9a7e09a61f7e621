// Recall by length and depth: the baseline's accuracy, and what each arm changes.
#include <fmt/format.h>

#include <algorithm>

#include "reports/curves.h"
#include "reports/html/figure.h"
#include "reports/html/figures.h"
#include "reports/html/svg/heat_map.h"
#include "reports/recall_grid.h"

namespace replayeval::reports::html {
namespace {

// Of one cell, in percent or points.
std::optional<double> value_of(const RecallCell& cell, const std::string& arm, bool is_baseline) {
  if (is_baseline) {
    const auto found = cell.accuracy.find(arm);
    return found == cell.accuracy.end() ? std::nullopt : std::optional<double>(100.0 * found->second.value);
  }
  const auto found = cell.delta.find(arm);
  return found == cell.delta.end() ? std::nullopt : std::optional<double>(100.0 * found->second.value);
}

std::string label_of(double value, bool is_baseline) {
  if (is_baseline) return fmt::format("{:.0f}", value);
  return value == 0.0 ? "0" : fmt::format("{:+.1f}", value);
}

void add_cells(svg::HeatMap& map, const RecallGrid& grid, const std::string& arm, bool is_baseline) {
  for (const RecallCell* cell : grid.cells) {
    const std::optional<double> value = value_of(*cell, arm, is_baseline);
    if (!value) continue;
    map.cells.push_back({grid.column_of(*cell), grid.depths.size() - 1 - grid.row_of(*cell),
                         cell->signal ? map.scale->css_class(*value) : "none", label_of(*value, is_baseline)});
  }
}

std::string panel(const Shown& shown, const RecallGrid& grid, std::size_t arm, const std::string& id) {
  const std::string name = arm_names(shown.results).at(arm);
  const bool is_baseline = name == shown.results.baseline;
  const double reach = grid.reach();
  const svg::HeatScale scale = is_baseline ? svg::HeatScale::linear(0.0, 100.0) : svg::HeatScale::two_sided(reach);
  const std::string title = fmt::format("{}, {}: {}", grid.task, name,
                                        is_baseline ? "accuracy of the baseline, %" : "change of accuracy, points");
  svg::HeatMap map;
  map.title = {id, title,
               "A column a length of document and a row a depth at which the answer stands in it; grey where the "
               "baseline is no better than a guess."};
  map.x_label = "tokens";
  map.y_label = "depth";
  map.columns = grid.length_names();
  map.rows = grid.depth_names();
  std::reverse(map.rows.begin(), map.rows.end());
  map.scale = &scale;
  map.low_label = is_baseline ? "0 %" : fmt::format("{:+.1f}", -reach);
  map.high_label = is_baseline ? "100 %" : fmt::format("{:+.1f}", reach);
  add_cells(map, grid, name, is_baseline);
  return figure({svg::heat_map(map), title, "Grey: no signal, or too few answers to tell.", ""});
}

}  // namespace

std::string recall_figures(const Shown& shown) {
  std::string markup;
  std::size_t task = 0;
  for (const RecallGrid& grid : recall_grids(shown.workload)) {
    const bool signal =
        std::any_of(grid.cells.begin(), grid.cells.end(), [](const RecallCell* cell) { return cell->signal; });
    const std::vector<std::string> arms = arm_names(shown.results);
    std::string panels;
    for (std::size_t arm = 0; arm < arms.size(); ++arm)
      if (signal || arms[arm] == shown.results.baseline)  // there is nothing to lose otherwise
        panels += panel(shown, grid, arm, fmt::format("{}-recall{}-{}", shown.id, task, arm));
    markup += side_by_side(panels);
    ++task;
  }
  return markup;
}

}  // namespace replayeval::reports::html
