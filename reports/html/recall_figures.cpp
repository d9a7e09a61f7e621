// Recall by length and depth: the baseline's accuracy, and what each arm changes.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <optional>

#include "reports/curves.h"
#include "reports/html/figure.h"
#include "reports/html/figures.h"
#include "reports/html/svg/heat_map.h"
#include "reports/numbers.h"
#include "reports/recall_grid.h"

namespace replayeval::reports::html {
namespace {

struct Value {  // of one cell and arm, in percent or points
  double value = 0.0, colour = 0.0;
  std::optional<double> low, high;
};

std::optional<Value> value_of(const RecallGrid& grid, const RecallCell& cell, const std::string& arm,
                              bool is_baseline) {
  if (is_baseline) {
    const auto found = cell.accuracy.find(arm);
    if (found == cell.accuracy.end()) return std::nullopt;
    const Metric& accuracy = found->second;
    return Value{100.0 * accuracy.value, 100.0 * accuracy.value, accuracy.low, accuracy.high};
  }
  const std::optional<double> shade = grid.shade(cell, arm);
  if (!shade) return std::nullopt;
  const Delta& delta = cell.delta.at(arm);
  return Value{100.0 * delta.value, *shade, delta.low, delta.high};
}

std::string label_of(double value, bool is_baseline) {
  if (is_baseline) return fmt::format("{:.0f}", value);
  return value == 0.0 ? "0" : fmt::format("{:+.1f}", value);
}

// "8,192 tokens, depth 0.5: -25.0 points [-70.2, +20.2], of 4 answers in 4 documents"
std::string title_of(const RecallCell& cell, const Value& value, bool is_baseline) {
  const auto number = [&](double of) { return is_baseline ? fmt::format("{:.1f}", of) : fmt::format("{:+.1f}", of); };
  std::string text = fmt::format("{} tokens, {}{}: {} {}", count_text(cell.length), cell.depth ? "depth " : "",
                                 depth_name(cell.depth), number(value.value), is_baseline ? "%" : "points");
  if (value.low && value.high)
    text += fmt::format(" [{}, {}]", number(100.0 * *value.low), number(100.0 * *value.high));
  text += fmt::format(", of {} answers in {} documents", count_text(answers_of(cell)), count_text(cell.documents));
  return text + (cell.signal ? "" : "; no signal");
}

void add_cells(svg::HeatMap& map, const RecallGrid& grid, const std::string& arm, bool is_baseline) {
  for (const RecallCell* cell : grid.cells) {
    const std::optional<Value> value = value_of(grid, *cell, arm, is_baseline);
    if (!value) continue;
    map.cells.push_back({grid.column_of(*cell), grid.depths.size() - 1 - grid.row_of(*cell),
                         cell->signal ? map.scale->css_class(value->colour) : "none",
                         label_of(value->value, is_baseline), title_of(*cell, *value, is_baseline)});
  }
}

std::string capitalised(std::string text) {
  if (!text.empty()) text[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(text[0])));
  return text;
}

std::string panel(const Shown& shown, const RecallGrid& grid, std::size_t arm, const std::string& id) {
  const std::string name = arm_names(shown.results).at(arm);
  const bool is_baseline = name == shown.results.baseline;
  const double reach = grid.reach();
  const svg::HeatScale scale = is_baseline ? svg::HeatScale::linear(0.0, 100.0) : svg::HeatScale::two_sided(reach);
  const std::string title = fmt::format("{}, {}: {}", grid.task, name,
                                        is_baseline ? "accuracy of the baseline, %" : "change of accuracy, points");
  svg::HeatMap map;
  map.title = {
      id, title,
      fmt::format("A column a length of document and a row a depth at which the answer stands in it; grey where "
                  "the baseline is no better than a guess{}; {}.",
                  is_baseline ? "" : ", faint where the interval holds zero", grid.answers_text())};
  map.x_label = "tokens";
  map.y_label = "depth";
  map.columns = grid.length_names();
  map.rows = grid.depth_names();
  std::reverse(map.rows.begin(), map.rows.end());
  map.scale = &scale;
  map.low_label = is_baseline ? "0 %" : fmt::format("{:+.1f}", -reach);
  map.high_label = is_baseline ? "100 %" : fmt::format("{:+.1f}", reach);
  add_cells(map, grid, name, is_baseline);
  return figure({svg::heat_map(map), title,
                 fmt::format("Grey: no signal, or too few answers to tell.{} {}.",
                             is_baseline ? "" : " Faint: the interval holds zero.", capitalised(grid.answers_text())),
                 ""});
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
