#include "reports/html/svg/scatter_plot.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "reports/html/svg/axis.h"

namespace replayeval::reports::html::svg {
namespace {

constexpr double top = 26.0, height = 180.0, zero_strip = 22.0, right_margin = 12.0;

// A logarithmic axis for what is above zero, and its foot for zero.
class QualityAxis {
 public:
  explicit QualityAxis(const std::vector<ScatterPlot::Mark>& marks) {
    double low = std::numeric_limits<double>::infinity(), high = 0.0;
    for (const ScatterPlot::Mark& mark : marks) {
      if (mark.y > 0.0) low = std::min(low, mark.y);
      high = std::max(high, mark.y);
      has_zero_ = has_zero_ || mark.y == 0.0;
    }
    if (high > 0.0) axis_ = Axis::logarithmic(low, high, foot() - (has_zero_ ? zero_strip : 0.0), top);
  }
  double place(double value) const { return value == 0.0 || !axis_ ? foot() - 8.0 : axis_->place(value); }
  std::vector<std::pair<double, std::string>> labels() const {
    std::vector<std::pair<double, std::string>> labels;
    if (has_zero_) labels.emplace_back(place(0.0), "0");
    if (axis_)
      for (const Tick& tick : axis_->ticks()) labels.emplace_back(axis_->place(tick.value), tick.label);
    return labels;
  }
  static double foot() { return top + height; }

 private:
  std::optional<Axis> axis_;
  bool has_zero_ = false;
};

Axis speed_axis(const std::vector<ScatterPlot::Mark>& marks, double left) {
  double low = 1.0, high = 1.0;
  for (const ScatterPlot::Mark& mark : marks) {
    low = std::min(low, mark.x);
    high = std::max(high, mark.x);
  }
  const double room = 0.08 * std::max(high - low, 0.1);
  return Axis::linear(low - room, high + room, left, width - right_margin, 4);
}

void draw_frontier(Drawing& drawing, const std::vector<ScatterPlot::Mark>& marks, const Axis& x, const QualityAxis& y) {
  std::string path, left;
  for (const ScatterPlot::Mark& mark : frontier(marks)) {
    const std::string at = coordinate(x.place(mark.x)), level = coordinate(y.place(mark.y));
    // Up at the mark before: whoever can do with less speed still has to pay what the next mark costs.
    if (!path.empty()) path += "L" + left + " " + level;
    path += (path.empty() ? "M" : "L") + at + " " + level;
    left = at;
  }
  drawing.path("frontier", path);
}

}  // namespace

std::vector<ScatterPlot::Mark> frontier(std::vector<ScatterPlot::Mark> marks) {
  const auto beaten = [all = marks](const ScatterPlot::Mark& mark) {
    return std::any_of(all.begin(), all.end(), [&](const ScatterPlot::Mark& other) {
      return other.x >= mark.x && other.y <= mark.y && (other.x > mark.x || other.y < mark.y);
    });
  };
  std::erase_if(marks, beaten);
  std::sort(marks.begin(), marks.end(), [](const auto& a, const auto& b) { return a.x < b.x; });
  return marks;
}

std::string scatter_plot(const ScatterPlot& plot) {
  if (plot.marks.empty()) return "";
  Drawing drawing(plot.title);
  const QualityAxis y(plot.marks);
  double left = 0.0;
  for (const auto& [at, label] : y.labels()) left = std::max(left, width_of(label) + 8.0);
  const Axis x = speed_axis(plot.marks, left);
  drawing.text("label", {0.0, 11.0}, Anchor::start, fitted(plot.y_label, width));
  for (const auto& [at, label] : y.labels()) {
    drawing.line("grid", {left, at}, {width - right_margin, at});
    drawing.text("tick", {left - 5.0, at + 4.0}, Anchor::end, label);
  }
  const double foot = QualityAxis::foot();
  for (const Tick& tick : x.ticks()) {
    const double at = x.place(tick.value);
    drawing.line("grid", {at, top}, {at, foot + 4.0});
    drawing.text("tick", {at, foot + 16.0}, Anchor::middle, tick.label + "×");
  }
  drawing.text("label", {(left + width - right_margin) / 2.0, foot + 32.0}, Anchor::middle,
               fitted(plot.x_label, width - left));
  draw_frontier(drawing, plot.marks, x, y);
  std::vector<std::pair<std::size_t, std::string>> names;
  for (const ScatterPlot::Mark& mark : plot.marks) {
    drawing.markup(mark_of(mark.arm, {x.place(mark.x), y.place(mark.y)}));
    names.emplace_back(mark.arm, mark.name);
  }
  return drawing.finished(foot + 40.0 + draw_legend(drawing, foot + 40.0, names) + 2.0);
}

}  // namespace replayeval::reports::html::svg
