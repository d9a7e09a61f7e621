// What several runs say of one arm: other checkpoints, lengths, storage types.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "reports/curves.h"
#include "reports/html/blocks.h"
#include "reports/html/by_scale.h"
#include "reports/html/figure.h"
#include "reports/html/figures.h"
#include "reports/html/short_names.h"
#include "reports/html/svg/drawing.h"
#include "reports/html/svg/row_plot.h"
#include "reports/metric_names.h"
#include "reports/numbers.h"

namespace replayeval::reports::html {
namespace {

struct Compared {  // a delta of one run's arm
  std::string run, workload, arm;
  std::size_t number;  // of the run: its colour and mark
  const Delta* delta;
};

std::vector<Compared> perplexity_deltas(const std::vector<Run>& runs) {
  std::vector<Compared> all;
  for (std::size_t r = 0; r < runs.size(); ++r)
    for (const Workload& workload : runs[r].results.workloads)
      for (const std::string& arm : arm_names(runs[r].results)) {
        if (workload.kind != "perplexity" || !workload.deltas.contains(arm)) continue;
        const auto delta = workload.deltas.at(arm).find(names::perplexity_ratio);
        if (delta != workload.deltas.at(arm).end())
          all.push_back({runs[r].name, workload.name, arm, r, &delta->second});
      }
  return all;
}

// What every row of a run is called, in the room that the longest workload's name leaves it.
std::map<std::string, std::string> row_names(const std::vector<Compared>& all) {
  double room = svg::width;
  std::vector<std::string> names;
  for (const Compared& compared : all) {
    room = std::min(room, svg::width - svg::width_of(" · " + compared.workload));
    names.push_back(compared.run);
  }
  const std::vector<std::string> texts = short_names(names, room);
  std::map<std::string, std::string> by_run;
  for (std::size_t i = 0; i < names.size(); ++i) by_run[names[i]] = texts[i];
  return by_run;
}

svg::Row row_of(const Compared& compared, const std::string& name) {
  const Delta& delta = *compared.delta;
  svg::Row row;
  row.value = spread_text(spread(delta.value, delta.low, delta.high, 100.0));
  row.name = name + " · " + compared.workload;
  row.arm = compared.number;
  row.centre = 100.0 * delta.value;
  if (delta.low && delta.high) {
    row.low = 100.0 * *delta.low;
    row.high = 100.0 * *delta.high;
  }
  return row;
}

// A group an arm, in the order of its first run.
std::vector<svg::RowGroup> groups_of(const std::vector<Compared>& all) {
  const std::map<std::string, std::string> names = row_names(all);
  std::vector<svg::RowGroup> groups;
  for (const Compared& compared : all) {
    auto group = std::find_if(groups.begin(), groups.end(),
                              [&](const svg::RowGroup& known) { return known.heading == compared.arm; });
    if (group == groups.end()) group = groups.insert(group, {compared.arm, {}});
    group->rows.push_back(row_of(compared, names.at(compared.run)));
  }
  return groups;
}

double reach_of(const svg::RowGroup& group) {
  double reach = 0.0;
  for (const svg::Row& row : group.rows)
    for (const auto& end : {row.centre, row.low, row.high}) reach = std::max(reach, std::abs(end.value_or(0.0)));
  return reach;
}

}  // namespace

std::string side_by_side_figures(const std::vector<Run>& runs) {
  const std::vector<Compared> all = perplexity_deltas(runs);
  std::string figures;
  std::size_t number = 0;
  auto scales = by_scale(groups_of(all), reach_of);
  for (auto& groups : scales) {
    const char* size = scales.size() == 1 ? "" : number == 0 ? ", the largest changes" : ", smaller changes";
    const std::string title = std::string("Change of perplexity, run by run") + size;
    svg::RowPlot plot;
    plot.title = {fmt::format("runs{}", number++), title,
                  "For each arm a row a run: the mark is the change of perplexity against that run's baseline in "
                  "percent, the line its confidence interval. To the right is worse."};
    plot.x_label = "ΔPPL %";
    plot.groups = std::move(groups);
    plot.zero_line = true;
    figures += row_figures(plot, "To the right is worse.");
  }
  if (figures.empty()) return "";
  Table data({"arm", "run", "workload", "ΔPPL % [interval]", "method"}, {1, 2, 3, 4});
  for (const Compared& compared : all)
    data.add_row({code(compared.arm), compared.run, compared.workload,
                  spread_text(spread(compared.delta->value, compared.delta->low, compared.delta->high, 100.0)),
                  compared.delta->method});
  return side_by_side(figures) + folded("Numbers", table_of(data));
}

}  // namespace replayeval::reports::html
