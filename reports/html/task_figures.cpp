// Forest plots of downstream tasks.
#include <fmt/format.h>

#include <algorithm>

#include "reports/curves.h"
#include "reports/html/figure.h"
#include "reports/html/figures.h"
#include "reports/html/svg/row_plot.h"
#include "reports/numbers.h"
#include "reports/task_table.h"

namespace replayeval::reports::html {
namespace {

double scale_of(const std::string& unit) { return unit == "none" ? 1.0 : 100.0; }

svg::Row row_of(const std::string& name, std::size_t arm, const Delta& delta, double scale) {
  svg::Row row;
  row.name = name;
  row.value = spread_text(spread(delta.value, delta.low, delta.high, scale));
  row.arm = arm;
  row.centre = scale * delta.value;
  if (delta.low && delta.high) {
    row.low = scale * *delta.low;
    row.high = scale * *delta.high;
  }
  return row;
}

std::string prefix_of(const std::vector<Run>& runs, const Run& run) { return runs.size() > 1 ? run.name + " · " : ""; }

// The tasks of one run that have this metric, and what they pool to.
svg::RowGroup group_of(const Run& run, std::size_t arm, const TaskMetric& metric) {
  svg::RowGroup group;
  const std::string name = arm_names(run.results).at(arm);
  for (const Workload& workload : run.results.workloads)
    for (const TaskMetric& own : task_metrics(workload)) {
      if (own.name != metric.name || own.unit != metric.unit) continue;
      const auto deltas = workload.deltas.find(name);
      if (deltas == workload.deltas.end() || !deltas->second.contains(own.delta)) continue;
      group.rows.push_back(row_of(workload.name, arm, deltas->second.at(own.delta), scale_of(own.unit)));
    }
  for (const TaskFamily& family : run.results.task_families) {
    if (family.metric != metric.name || family.arm != name) continue;
    for (const auto& [words, delta] :
         {std::pair("all, by document", &family.by_question), std::pair("all, by task", &family.by_task)}) {
      group.rows.push_back(row_of(words, arm, *delta, 100.0));
      group.rows.back().pooled = true;
    }
  }
  return group;
}

bool has_metric(const Workload& workload, const TaskMetric& metric) {
  const std::vector<TaskMetric> own = task_metrics(workload);
  return std::any_of(own.begin(), own.end(),
                     [&](const TaskMetric& one) { return one.name == metric.name && one.unit == metric.unit; });
}

// Of the tasks that have the metric; nothing where one of them asked for no margin, or for another.
std::optional<double> margin_of(const std::vector<Run>& runs, const TaskMetric& metric) {
  std::optional<double> margin;
  for (const Run& run : runs)
    for (const Workload& workload : run.results.workloads) {
      if (!has_metric(workload, metric)) continue;
      if (!workload.data.contains("margin")) return std::nullopt;
      const double own = workload.data["margin"].get<double>();
      if (margin && *margin != own) return std::nullopt;
      margin = own;
    }
  return margin;
}

std::string forest(const std::vector<Run>& runs, const TaskMetric& metric, std::size_t number) {
  const std::string title = fmt::format("{}: difference from the baseline", metric.name);
  svg::RowPlot plot;
  plot.title = {fmt::format("forest{}", number), title,
                fmt::format("For each arm a row a task: the mark is {} of the arm minus the baseline's, the line its "
                            "confidence interval; diamonds are all tasks together. {} is better.",
                            metric.name, metric.higher_is_better ? "To the right" : "To the left")};
  plot.x_label = metric.unit == "percent" ? "%" : metric.unit == "points" ? "points" : "difference";
  for (const Run& run : runs)
    for (std::size_t arm = 0; arm < run.results.arms.size(); ++arm) {
      svg::RowGroup group = group_of(run, arm, metric);
      if (group.rows.empty()) continue;
      group.heading = prefix_of(runs, run) + arm_names(run.results)[arm];
      plot.groups.push_back(std::move(group));
    }
  plot.zero_line = true;
  if (const auto margin = margin_of(runs, metric); margin && metric.unit == "points") plot.margin = 100.0 * *margin;
  return row_figures(plot,
                     std::string(metric.higher_is_better ? "To the right is better." : "To the left is better.") +
                         (plot.margin ? fmt::format(" Shaded: equivalent within ±{:g} points.", *plot.margin) : ""));
}

}  // namespace

std::string task_figures(const std::vector<Run>& runs) {
  std::vector<TaskMetric> metrics;
  for (const Run& run : runs)
    for (const Workload& workload : run.results.workloads)
      for (const TaskMetric& metric : task_metrics(workload))
        if (std::none_of(metrics.begin(), metrics.end(), [&](const TaskMetric& known) {
              return known.name == metric.name && known.unit == metric.unit;
            }))
          metrics.push_back(metric);
  std::string figures;
  for (std::size_t i = 0; i < metrics.size(); ++i) figures += forest(runs, metrics[i], i);
  return side_by_side(figures);
}

}  // namespace replayeval::reports::html
