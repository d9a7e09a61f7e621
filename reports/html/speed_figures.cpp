// Benchmarks as curves over the batch size.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "reports/html/figure.h"
#include "reports/html/figures.h"
#include "reports/html/svg/line_chart.h"
#include "reports/numbers.h"

namespace replayeval::reports::html {
namespace {

// A place a batch size, however far apart.
std::vector<svg::Tick> batch_ticks(const std::set<std::int64_t>& batches) {
  std::vector<svg::Tick> ticks;
  for (const std::int64_t batch : batches) ticks.push_back({static_cast<double>(ticks.size()), count_text(batch)});
  return ticks;
}

double place_of(const std::set<std::int64_t>& batches, std::int64_t batch) {
  return static_cast<double>(std::distance(batches.begin(), batches.find(batch)));
}

Curve& curve_named(std::vector<Curve>& curves, std::size_t arm, const std::string& name) {
  const auto found = std::find_if(curves.begin(), curves.end(), [&](const Curve& curve) { return curve.name == name; });
  if (found != curves.end()) return *found;
  return curves.emplace_back(Curve{arm, name, {}});
}

std::string by_batch_figure(const svg::Title& title, const char* y_label, std::vector<Curve> curves,
                            const std::set<std::int64_t>& batches, const std::string& caption) {
  for (Curve& curve : curves)
    std::sort(curve.points.begin(), curve.points.end(), [](const auto& a, const auto& b) { return a.x < b.x; });
  svg::LineChart chart;
  chart.title = title;
  chart.x_label = "sequences at once (batch)";
  chart.y_label = y_label;
  chart.curves = std::move(curves);
  chart.x_ticks = batch_ticks(batches);
  chart.y_low = 1.0;
  chart.y_high = 1.0;
  return figure({svg::line_chart(chart), title.title, caption, ""});
}

}  // namespace

std::string kernel_bench_figures(const KernelBench& bench, const std::string& id) {
  std::set<std::int64_t> batches;
  for (const KernelBench::Row& row : bench.rows) batches.insert(row.batch);
  std::vector<Curve> speedups, shares;
  std::vector<std::string> states;
  for (const KernelBench::Row& row : bench.rows) {
    auto at = std::find(states.begin(), states.end(), row.state);
    if (at == states.end()) at = states.insert(states.end(), row.state);
    const auto state = static_cast<std::size_t>(at - states.begin());
    const double x = place_of(batches, row.batch);
    const auto add = [&](std::vector<Curve>& curves, std::size_t arm, const std::string& name, double y) {
      curve_named(curves, arm, name).points.push_back({.x = x, .y = y, .low = {}, .high = {}});
    };
    add(speedups, state, row.state + " state", row.exact.microseconds / row.replay.microseconds);
    add(shares, 2 * state, row.state + " state, exact", 100.0 * roofline_share(bench, row.exact));
    add(shares, 2 * state + 1, row.state + " state, replay", 100.0 * roofline_share(bench, row.replay));
  }
  return side_by_side(
      by_batch_figure({id + "-speedup", "Speed of replay over exact, one layer",
                       "A curve a storage type of the state: time of the exact kernel over that of the replay kernel."},
                      "time of exact / time of replay", speedups, batches, "Above 1: replay is faster.") +
      by_batch_figure(
          {id + "-roofline", "Share of the memory roofline, %",
           "A curve a kernel and storage type: the bytes that a step has to move over its time, against the "
           "bandwidth of plain reads on the same device."},
          "% of plain reads", shares, batches, "Bytes that a step has to move, against plain reads."));
}

std::string model_bench_figures(const ModelBench& bench, const std::string& id) {
  if (bench.rows.empty()) return {};
  std::set<std::int64_t> batches;
  for (const ModelBench::Row& row : bench.rows) batches.insert(row.batch);
  std::vector<Curve> speedups;
  for (const ModelBench::Row& row : bench.rows) {
    const auto arm =
        static_cast<std::size_t>(std::find(bench.arms.begin(), bench.arms.end(), row.arm) - bench.arms.begin());
    const std::optional<double> ratio = bench.speed_ratio(row);
    if (!ratio) continue;
    curve_named(speedups, arm, row.arm)
        .points.push_back({.x = place_of(batches, row.batch), .y = *ratio, .low = {}, .high = {}});
  }
  return side_by_side(by_batch_figure({id + "-speedup", "Speed over the baseline, whole model",
                                       "A curve an arm: its tokens a second over the baseline's at the same batch."},
                                      "tokens/s over the baseline\'s", speedups, batches,
                                      "Above 1: faster than the baseline."));
}

}  // namespace replayeval::reports::html
