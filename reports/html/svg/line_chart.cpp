#include "reports/html/svg/line_chart.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "reports/numbers.h"

namespace replayeval::reports::html::svg {
namespace {

constexpr double plot_top = 26.0, plot_height = 170.0, right_margin = 10.0;

struct Range {
  double low = std::numeric_limits<double>::infinity(), high = -std::numeric_limits<double>::infinity();
  void hold(double value) {
    if (!std::isfinite(value)) return;
    low = std::min(low, value);
    high = std::max(high, value);
  }
};

Axis y_axis(const LineChart& chart) {
  Range range;
  for (const Curve& curve : chart.curves)
    for (const Curve::Point& point : curve.points)
      for (const double value : {point.y, point.low.value_or(point.y), point.high.value_or(point.y)}) range.hold(value);
  if (chart.zero_line) range.hold(0.0);
  if (chart.y_low) range.hold(*chart.y_low);
  if (chart.y_high) range.hold(*chart.y_high);
  const double bottom = plot_top + plot_height;
  return chart.logarithmic_y ? Axis::logarithmic(range.low, range.high, bottom, plot_top)
                             : Axis::linear(range.low, range.high, bottom, plot_top);
}

Axis x_axis(const LineChart& chart, double left) {
  if (!chart.x_ticks.empty())
    return Axis::named(chart.x_ticks.front().value - 0.5, chart.x_ticks.back().value + 0.5, left, width - right_margin,
                       chart.x_ticks);
  Range range;
  range.hold(0.0);
  for (const Curve& curve : chart.curves)
    for (const Curve::Point& point : curve.points) range.hold(point.x);
  return Axis::linear(range.low, range.high, left, width - right_margin, 4);
}

void draw_axes(Drawing& drawing, const LineChart& chart, const Axis& x, const Axis& y, double left) {
  const double bottom = plot_top + plot_height;
  drawing.text("label", {0.0, 11.0}, Anchor::start, fitted(chart.y_label, width));
  for (const Tick& tick : y.ticks()) {
    const double at = y.place(tick.value);
    drawing.line(tick.value == 0.0 && chart.zero_line ? "zero" : "grid", {left, at}, {width - right_margin, at});
    drawing.text("tick", {left - 5.0, at + 4.0}, Anchor::end, tick.label);
  }
  std::vector<Label> labels;
  for (const Tick& tick : x.ticks()) {
    const double at = x.place(tick.value);
    drawing.line("grid", {at, bottom}, {at, bottom + 4.0});
    labels.push_back({at, tick.label});
  }
  for (const Label& label : with_room(labels))
    drawing.text("tick", {label.at, bottom + 16.0}, Anchor::middle, label.text);
  drawing.text("label", {(left + width - right_margin) / 2.0, bottom + 32.0}, Anchor::middle,
               fitted(chart.x_label, width - left));
}

void draw_curve(Drawing& drawing, const Curve& curve, const Axis& x, const Axis& y) {
  std::string line, band, back;
  for (const Curve::Point& point : curve.points) {
    const double at = x.place(point.x);
    line += (line.empty() ? "M" : "L") + coordinate(at) + " " + coordinate(y.place(point.y));
    if (!point.low || !point.high) continue;
    band += (band.empty() ? "M" : "L") + coordinate(at) + " " + coordinate(y.place(*point.high));
    back.insert(0, "L" + coordinate(at) + " " + coordinate(y.place(*point.low)));
  }
  const std::string style = series_class(curve.arm);
  if (curve.points.size() > 1 && !band.empty()) drawing.path("band " + style, band + back + "z");
  drawing.path("line " + style, line);
  for (const Curve::Point& point : curve.points) {
    const double at = x.place(point.x);
    if (point.low && point.high)
      drawing.line("whisker " + style, {at, y.place(*point.low)}, {at, y.place(*point.high)});
    drawing.markup(mark_of(curve.arm, {at, y.place(point.y)}));
  }
}

}  // namespace

void spread_by_doubling(LineChart& chart) {
  const auto place_of = [](double x) { return std::log2(std::max(1.0, x)); };
  std::set<double> places;
  for (Curve& curve : chart.curves)
    for (Curve::Point& point : curve.points) {
      places.insert(point.x);
      point.x = place_of(point.x);
    }
  for (const double x : places) chart.x_ticks.push_back({place_of(x), count_text(std::llround(x))});
}

std::string line_chart(const LineChart& chart) {
  if (chart.curves.empty()) return "";
  Drawing drawing(chart.title);
  const Axis y = y_axis(chart);
  const double left = y.widest_label() + 8.0;
  const Axis x = x_axis(chart, left);
  draw_axes(drawing, chart, x, y, left);
  std::vector<std::pair<std::size_t, std::string>> names;
  for (const Curve& curve : chart.curves) {
    draw_curve(drawing, curve, x, y);
    names.emplace_back(curve.arm, curve.name);
  }
  const double legend_top = plot_top + plot_height + 40.0;
  return drawing.finished(legend_top + draw_legend(drawing, legend_top, names) + 2.0);
}

}  // namespace replayeval::reports::html::svg
