// Benchmarks as curves over the batch size, and over the length of the ring.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "reports/html/figure.h"
#include "reports/html/figures.h"
#include "reports/html/svg/line_chart.h"
#include "reports/numbers.h"

namespace replayeval::reports::html {
namespace {

// A place a value (a batch size, a length of the ring), however far apart.
std::vector<svg::Tick> ticks_of(const std::set<std::int64_t>& values) {
  std::vector<svg::Tick> ticks;
  for (const std::int64_t value : values) ticks.push_back({static_cast<double>(ticks.size()), count_text(value)});
  return ticks;
}

double place_of(const std::set<std::int64_t>& values, std::int64_t value) {
  return static_cast<double>(std::distance(values.begin(), values.find(value)));
}

Curve& curve_named(std::vector<Curve>& curves, std::size_t arm, const std::string& name) {
  const auto found = std::find_if(curves.begin(), curves.end(), [&](const Curve& curve) { return curve.name == name; });
  if (found != curves.end()) return *found;
  return curves.emplace_back(Curve{arm, name, {}});
}

struct Axes {
  const char *x_label, *y_label;
  std::set<std::int64_t> values;  // of x
};

constexpr const char* batch_label = "sequences at once (batch)";
constexpr const char* speed_label = "time of exact / time of replay";

std::string ratio_figure(const svg::Title& title, const Axes& axes, std::vector<Curve> curves,
                         const std::string& caption) {
  for (Curve& curve : curves)
    std::sort(curve.points.begin(), curve.points.end(), [](const auto& a, const auto& b) { return a.x < b.x; });
  svg::LineChart chart;
  chart.title = title;
  chart.x_label = axes.x_label;
  chart.y_label = axes.y_label;
  chart.curves = std::move(curves);
  chart.x_ticks = ticks_of(axes.values);
  chart.y_low = 1.0;
  chart.y_high = 1.0;
  return figure({svg::line_chart(chart), title.title, caption, ""});
}

void add_point(std::vector<Curve>& curves, std::size_t number, const std::string& name, double x, double y) {
  curve_named(curves, number, name).points.push_back({.x = x, .y = y, .low = {}, .high = {}});
}

double speedup(const KernelBench::Row& row) { return row.exact.microseconds / row.replay.microseconds; }

// Of one ring and length: speedup and share of the roofline by batch.
std::string by_batch(const KernelBench& bench, const std::string& id) {
  std::set<std::int64_t> batches;
  for (const KernelBench::Row& row : bench.rows) batches.insert(row.batch);
  std::vector<Curve> speedups, shares;
  std::vector<std::string> states;
  for (const KernelBench::Row& row : bench.rows) {
    auto at = std::find(states.begin(), states.end(), row.state);
    if (at == states.end()) at = states.insert(states.end(), row.state);
    const auto state = static_cast<std::size_t>(at - states.begin());
    const double x = place_of(batches, row.batch);
    const std::string name = row.state + " state";
    add_point(speedups, 2 * state, name, x, speedup(row));
    if (row.mixed)
      add_point(speedups, 2 * state + 1, name + ", mixed positions", x,
                row.exact.microseconds / row.mixed->microseconds);
    add_point(shares, 2 * state, name + ", exact", x, 100.0 * roofline_share(bench, row.exact));
    add_point(shares, 2 * state + 1, name + ", replay", x, 100.0 * roofline_share(bench, row.replay));
  }
  const std::string what = fmt::format("{}, {}, L = {}", bench.family, ring_name(bench), bench.buffer_len);
  return ratio_figure({id + "-speedup", "Speed of replay over exact, one layer: " + what,
                       "A curve a storage type of the state: time of the exact kernel over that of the replay kernel, "
                       "with the sequences at one position of their rings or at all of them."},
                      {batch_label, speed_label, batches}, speedups, "Above 1: replay is faster.") +
         ratio_figure(
             {id + "-roofline", "Share of the memory roofline, %: " + what,
              "A curve a kernel and storage type: the bytes that a step has to move over its time, against the "
              "bandwidth of plain reads on the same device."},
             {batch_label, "% of plain reads", batches}, shares, "Bytes that a step has to move, against plain reads.");
}

// Of one ring: speedup by L, a curve a state and batch that several lengths have.
std::string by_buffer_len(const KernelGroup& group, const std::string& ring, const std::string& id) {
  const std::vector<std::int64_t> all = group.buffer_lens(ring);
  const std::set<std::int64_t> lengths(all.begin(), all.end());
  if (lengths.size() < 2) return "";
  std::map<std::pair<std::string, std::int64_t>, std::vector<std::pair<std::int64_t, double>>> measured;
  for (const KernelBench* bench : group.benches)
    for (const KernelBench::Row& row : bench->rows)
      if (ring_name(*bench) == ring) measured[{row.state, row.batch}].emplace_back(bench->buffer_len, speedup(row));
  std::vector<Curve> curves;
  std::size_t number = 0;
  for (const auto& [of, points] : measured) {
    if (points.size() < 2) continue;
    for (const auto& [length, ratio] : points)
      add_point(curves, number, fmt::format("{} state, batch {}", of.first, count_text(of.second)),
                place_of(lengths, length), ratio);
    ++number;
  }
  return ratio_figure(
      {id + "-lengths", fmt::format("Speed of replay over exact by L, one layer: {}, {}", group.first().family, ring),
       "A curve a storage type of the state and batch: time of the exact kernel over that of the replay "
       "kernel, by the number of tokens that the ring holds."},
      {"tokens that the ring holds (L)", speed_label, lengths}, curves, "Above 1: replay is faster.");
}

std::size_t batches_of(const KernelBench& bench) {
  std::set<std::int64_t> batches;
  for (const KernelBench::Row& row : bench.rows) batches.insert(row.batch);
  return batches.size();
}

}  // namespace

std::string kernel_bench_figures(const KernelGroup& group, const std::string& id) {
  std::string figures;
  std::size_t number = 0;
  for (const std::string& ring : group.rings()) {
    const KernelBench* widest = nullptr;  // the length that most batches were timed with
    for (const KernelBench* bench : group.benches)
      if (ring_name(*bench) == ring && (widest == nullptr || batches_of(*bench) > batches_of(*widest))) widest = bench;
    const std::string own = number++ == 0 ? id : fmt::format("{}-{}", id, number);
    figures += by_batch(*widest, own) + by_buffer_len(group, ring, own);
  }
  return side_by_side(figures);
}

std::string model_bench_figures(const ModelBench& bench, const std::string& id) {
  if (bench.rows.empty()) return {};
  std::set<std::int64_t> batches;
  for (const ModelBench::Row& row : bench.rows) batches.insert(row.batch);
  std::vector<Curve> speedups;
  for (const ModelBench::Row& row : bench.rows) {
    const auto arm =
        static_cast<std::size_t>(std::find_if(bench.arms.begin(), bench.arms.end(),
                                              [&](const nlohmann::json& one) { return one.at("name") == row.arm; }) -
                                 bench.arms.begin());
    const std::optional<double> ratio = bench.speed_ratio(row);
    if (!ratio) continue;
    curve_named(speedups, arm, row.arm)
        .points.push_back({.x = place_of(batches, row.batch), .y = *ratio, .low = {}, .high = {}});
  }
  return side_by_side(ratio_figure({id + "-speedup", "Speed over the baseline, whole model",
                                    "A curve an arm: its tokens a second over the baseline's at the same batch."},
                                   {batch_label, "tokens/s over the baseline\'s", batches}, speedups,
                                   "Above 1: faster than the baseline."));
}

}  // namespace replayeval::reports::html
