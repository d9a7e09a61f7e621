// Perplexity by position, and how far the predicted distributions move.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "reports/curves.h"
#include "reports/html/by_scale.h"
#include "reports/html/figure.h"
#include "reports/html/figures.h"
#include "reports/html/svg/line_chart.h"
#include "reports/html/svg/row_plot.h"
#include "reports/metric_names.h"
#include "reports/numbers.h"

namespace replayeval::reports::html {
namespace {

double reach_of(const Curve& curve) {
  double reach = 0.0;
  for (const Curve::Point& point : curve.points)
    for (const double value : {point.y, point.low.value_or(0.0), point.high.value_or(0.0)})
      reach = std::max(reach, std::abs(value));
  return reach;
}

std::vector<svg::Tick> bucket_ticks(const Workload& workload) {
  std::vector<svg::Tick> ticks;
  for (std::size_t i = 0; i < workload.positions.size(); ++i)
    ticks.push_back({static_cast<double>(i), fmt::format("{}–", count_text(workload.positions[i].begin))});
  return ticks;
}

std::optional<double> value_of(const std::map<std::string, Metric>& metrics, const std::string& name) {
  const auto found = metrics.find(name);
  return found == metrics.end() ? std::nullopt : std::optional<double>(found->second.value);
}

// From the median to the largest, with the mean as the mark; what is not above zero has no place here.
svg::Row kl_row(const std::map<std::string, Metric>& metrics) {
  svg::Row row;
  std::optional<double> smallest;
  for (const char* name : {names::kl_median, names::kl_p90, names::kl_p99, names::kl_p999, names::kl_max})
    if (const auto value = value_of(metrics, name); value && *value > 0.0) {
      if (!smallest) smallest = value;
      row.high = value;
      if (name != names::kl_median && name != names::kl_max) row.ticks.push_back(*value);
    }
  const auto mean = value_of(metrics, names::kl_mean), largest = value_of(metrics, names::kl_max);
  if (mean && *mean > 0.0 && smallest) {
    row.centre = mean;
    row.low = smallest;
    row.value = "mean " + significant(*mean, 3);
  } else {
    row.value = largest && *largest == 0.0 ? "0 for every token" : "no mean above 0";
  }
  return row;
}

svg::Row dp_row(const std::map<std::string, Metric>& metrics) {
  svg::Row row;
  row.centre = value_of(metrics, "dp_median");
  row.low = value_of(metrics, "dp_p1");
  row.high = value_of(metrics, "dp_p99");
  row.inner_low = value_of(metrics, "dp_p5");
  row.inner_high = value_of(metrics, "dp_p95");
  if (const auto rms = value_of(metrics, names::dp_rms)) row.value = "RMS " + significant(*rms, 3);
  return row;
}

template <typename RowOf>
std::vector<svg::Row> rows_of(const Shown& shown, RowOf row_of) {
  std::vector<svg::Row> rows;
  const std::vector<std::string> arms = arm_names(shown.results);
  for (std::size_t arm = 0; arm < arms.size(); ++arm) {
    const auto metrics = shown.workload.divergence.find(arms[arm]);
    if (metrics == shown.workload.divergence.end()) continue;
    rows.push_back(row_of(metrics->second));
    rows.back().arm = arm;
    rows.back().name = arms[arm];
  }
  return rows;
}

std::string kl_figure(const Shown& shown) {
  const std::string title = "KL divergence of the next token's distribution, by arm";
  svg::RowPlot plot;
  plot.title = {
      shown.id + "-kl", title,
      "One row an arm on a logarithmic axis: a line from the median to the largest KL divergence from the "
      "baseline over all tokens, small marks at the quantiles 90, 99 and 99.9 %, the large mark at the mean."};
  plot.x_label = "nats a token, logarithmic";
  plot.groups.push_back({"", rows_of(shown, kl_row)});
  std::erase_if(plot.groups.front().rows,
                [](const svg::Row& row) { return !row.centre && row.value.starts_with("no"); });
  plot.logarithmic = true;
  return row_figures(plot, "Median to maximum; small marks: 90, 99, 99.9 %; large mark: mean.");
}

std::string dp_figures(const Shown& shown) {
  std::vector<svg::Row> rows = rows_of(shown, dp_row);
  std::erase_if(rows, [](const svg::Row& row) { return !row.centre || !row.low || !row.high; });
  std::string figures;
  int number = 0;
  for (auto& group : by_scale(rows, [](const svg::Row& row) {
         return std::max(std::abs(row.low.value_or(0.0)), std::abs(row.high.value_or(0.0)));
       })) {
    const std::string title = "Change of the target token's probability, by arm";
    svg::RowPlot plot;
    plot.title = {fmt::format("{}-dp{}", shown.id, number++), title,
                  "One row an arm: the mark is the median over all tokens of the probability of the target, arm minus "
                  "baseline; the thick line holds 90 % of tokens, the thin one 98 %."};
    plot.x_label = "Δp, arm minus baseline";
    plot.groups.push_back({"", std::move(group)});
    plot.zero_line = true;
    figures += row_figures(plot, "Median; thick: 90 % of tokens; thin: 98 %.");
  }
  return figures;
}

}  // namespace

std::string position_figures(const Shown& shown) {
  const std::vector<Curve> curves = perplexity_by_position(shown.results, shown.workload);
  const auto groups = by_scale(curves, reach_of);
  std::string figures;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const std::string title = "Perplexity delta by position in the window";
    svg::LineChart chart;
    chart.title = {fmt::format("{}-position{}", shown.id, i), title,
                   "A curve an arm: the change of perplexity against the baseline in percent, with its confidence "
                   "interval as a band, for tokens that stand further and further back in the window."};
    chart.x_label = "position in the window, tokens";
    chart.y_label = "ΔPPL %";
    chart.curves = groups[i];
    chart.zero_line = true;
    chart.x_ticks = bucket_ticks(shown.workload);
    figures += figure({svg::line_chart(chart), title,
                       groups.size() > 1
                           ? fmt::format("Arms of one size, {} of {}; bands are intervals.", i + 1, groups.size())
                           : "Bands are intervals.",
                       ""});
  }
  return side_by_side(figures);
}

std::string divergence_figures(const Shown& shown) { return side_by_side(kl_figure(shown) + dp_figures(shown)); }

}  // namespace replayeval::reports::html
