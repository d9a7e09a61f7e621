// How long generated sequences stay the baseline's, and which signs of degeneration change.
#include <fmt/format.h>

#include "reports/curves.h"
#include "reports/generation_table.h"
#include "reports/html/figure.h"
#include "reports/html/figures.h"
#include "reports/html/svg/line_chart.h"
#include "reports/html/svg/row_plot.h"
#include "reports/numbers.h"

namespace replayeval::reports::html {
namespace {

std::string agreement_figure(const Shown& shown) {
  const std::string title = "Sequences that are still the baseline's";
  svg::LineChart chart;
  chart.title = {shown.id + "-agreement", title,
                 "A curve an arm: the share of generated sequences whose first tokens are all the baseline's, by the "
                 "number of tokens."};
  chart.x_label = "tokens generated, logarithmic";
  chart.y_label = "identical so far, %";
  chart.curves = agreement_by_step(shown.results, shown.workload);
  chart.y_low = 0.0;
  chart.y_high = 100.0;
  svg::spread_by_doubling(chart);
  return figure({svg::line_chart(chart), title, "", ""});
}

std::vector<svg::RowGroup> sign_groups(const Shown& shown) {
  std::vector<svg::RowGroup> groups;
  const std::vector<std::string> arms = arm_names(shown.results);
  for (const auto& [metric, title] : share_signs(shown.workload)) {
    svg::RowGroup group{.heading = title, .rows = {}};
    for (std::size_t arm = 0; arm < arms.size(); ++arm) {
      const auto deltas = shown.workload.deltas.find(arms[arm]);
      if (deltas == shown.workload.deltas.end() || !deltas->second.contains(metric)) continue;
      const Delta& delta = deltas->second.at(metric);
      svg::Row row;
      row.name = arms[arm];
      row.arm = arm;
      row.centre = 100.0 * delta.value;
      if (delta.low && delta.high) {
        row.low = 100.0 * *delta.low;
        row.high = 100.0 * *delta.high;
      }
      row.value = spread_text(spread(delta.value, delta.low, delta.high, 100.0));
      group.rows.push_back(row);
    }
    if (!group.rows.empty()) groups.push_back(std::move(group));
  }
  return groups;
}

std::string sign_figure(const Shown& shown) {
  const std::string title = "Signs of degeneration, change in points";
  svg::RowPlot plot;
  plot.title = {
      shown.id + "-signs", title,
      "For each sign a row an arm: the mark is the arm's share minus the baseline's in percentage points, the "
      "line its confidence interval. To the right is worse."};
  plot.x_label = "points, arm minus baseline";
  plot.groups = sign_groups(shown);
  plot.zero_line = true;
  return row_figures(plot, "To the right is worse.");
}

}  // namespace

std::string generation_figures(const Shown& shown) {
  return side_by_side(sign_figure(shown) + agreement_figure(shown));
}

}  // namespace replayeval::reports::html
