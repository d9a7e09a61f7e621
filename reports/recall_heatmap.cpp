#include "reports/recall_heatmap.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "reports/recall_grid.h"

namespace replayeval::reports {
namespace {

constexpr int most_columns = 3, panel_pixels = 300, cell_pixels = 26, margin_pixels = 110;

// column, row, value (percent or points), whether the baseline has a signal there, label, what its colour stands for
std::string block_of(const RecallGrid& grid, const std::string& arm, bool is_baseline) {
  std::string block;
  for (const RecallCell* cell : grid.cells) {
    const auto delta = cell->delta.find(arm);
    const auto accuracy = cell->accuracy.find(arm);
    if (is_baseline ? accuracy == cell->accuracy.end() : delta == cell->delta.end()) continue;
    const double value = 100.0 * (is_baseline ? accuracy->second.value : delta->second.value);
    block += fmt::format("{} {} {} {} {} {}\n", grid.column_of(*cell), grid.row_of(*cell), value, cell->signal ? 1 : 0,
                         is_baseline ? fmt::format("{:.1f}", value) : fmt::format("{:+.1f}", value),
                         is_baseline ? value : *grid.shade(*cell, arm));
  }
  return block;
}

std::string axes_of(const RecallGrid& grid) {
  const auto tics_of = [](const std::vector<std::string>& names) {
    std::string tics;
    for (std::size_t i = 0; i < names.size(); ++i) tics += fmt::format("{}'{}' {}", i == 0 ? "" : ", ", names[i], i);
    return tics;
  };
  return fmt::format(
      "unset key\nset tics nomirror out\nset xtics rotate by -30 ({})\nset ytics ({})\nset xlabel 'tokens'\nset ylabel "
      "'depth'\nset xrange [-0.5:{}]\nset yrange [-0.5:{}]\n",
      tics_of(grid.length_names()), tics_of(grid.depth_names()), static_cast<double>(grid.lengths.size()) - 0.5,
      static_cast<double>(grid.depths.size()) - 0.5);
}

// The ends of the colour scale, and its middle where the bar is tall enough for a third label.
std::string scale_of(double low, double high, bool tall) {
  const std::string middle = tall ? fmt::format(", {}", (low + high) / 2) : "";
  return fmt::format("set cbrange [{0}:{1}]\nset cbtics ({0}, {1}{2})\n", low, high, middle);
}

std::string panel_of(const std::string& file, std::size_t index, const std::string& arm, bool is_baseline,
                     const RecallGrid& grid) {
  const bool tall = grid.depths.size() > 2;
  const std::string colours =
      is_baseline ? "set palette defined (0 '#ffffff', 1 '#6baed6')\nset cblabel '%'\n" + scale_of(0, 100, tall)
                  : "set palette defined (0 '#e6855e', 1 '#ffffff', 2 '#6fc2a0')\nset cblabel 'points'\n" +
                        scale_of(-grid.reach(), grid.reach(), tall);
  const std::string data = gnuplot_quoted(file) + fmt::format(" index {} ", index);
  const std::string title = arm + (is_baseline ? ": accuracy" : ": delta");
  // Titles of plots are not shown (`unset key`), but the SVG has them.
  return colours +
         fmt::format(
             "set title {0} noenhanced\nplot {1}using 1:2:(0.5):(0.5):($4 == 1 ? $6 : NaN) with boxxyerror fs "
             "solid lc palette title {0}, \\\n     {1}using ($4 == 0 ? $1 : NaN):2:(0.5):(0.5) with "
             "boxxyerror fs solid lc '#d0d0d0' title {2}, \\\n     {1}using 1:2:5 with labels title {3}\n",
             gnuplot_quoted(title), data, gnuplot_quoted(arm + ": no signal"),
             gnuplot_quoted(title + (is_baseline ? ", %" : ", points")));
}

FigureFiles heatmap_of(const Results& results, const Workload& workload, const RecallGrid& grid) {
  FigureFiles figure;
  figure.stem = fmt::format("{}-recall-{}", safe_name(workload.name), safe_name(grid.task));
  figure.title = fmt::format("Recall of {} by length and depth; grey: no signal; faint: within noise; {}", grid.task,
                             grid.answers_text());
  figure.description = fmt::format(
      "A map an arm, a column a length of document in tokens and a row a depth at which the answer stands in it: the "
      "accuracy of {} in percent, and what the other arms change in points. Faint: the interval holds zero.",
      results.baseline);
  std::vector<std::string> arms = {results.baseline};
  for (const nlohmann::json& arm : results.arms)
    if (arm.at("name") != results.baseline) arms.push_back(arm.at("name"));
  std::string panels;
  std::size_t index = 0;
  for (const std::string& arm : arms) {
    const bool is_baseline = arm == results.baseline;
    const std::string block = block_of(grid, arm, is_baseline);
    if (block.empty()) continue;
    if (index == 0)
      figure.data = "# length  depth  accuracy % (the baseline) or delta in points  signal  label  colour\n";
    figure.data += block + "\n\n";
    panels += panel_of(figure.stem + ".dat", index++, arm, is_baseline, grid);
  }
  const int count = static_cast<int>(index), columns = std::clamp(count, 1, most_columns);
  const int rows = std::max(1, (count + columns - 1) / columns);
  figure.width = columns * std::max(panel_pixels, 56 * static_cast<int>(grid.lengths.size()) + 130);
  figure.height = 50 + rows * (margin_pixels + cell_pixels * std::max(2, static_cast<int>(grid.depths.size())));
  figure.commands =
      axes_of(grid) +
      fmt::format("set multiplot layout {},{} title {} noenhanced\n", rows, columns, gnuplot_quoted(figure.title)) +
      panels + "unset multiplot";
  return figure;
}

}  // namespace

std::vector<FigureFiles> recall_heatmaps(const Results& results, const Workload& workload) {
  std::vector<FigureFiles> figures;
  for (const RecallGrid& grid : recall_grids(workload)) figures.push_back(heatmap_of(results, workload, grid));
  return figures;
}

}  // namespace replayeval::reports
