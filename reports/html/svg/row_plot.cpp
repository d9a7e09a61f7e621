#include "reports/html/svg/row_plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace replayeval::reports::html::svg {
namespace {

constexpr double heading_height = 22.0, top = 4.0, side = 14.0;
constexpr double tallest = 860.0;  // what a sheet of A4 has room for beside the caption

// Where a row's words and its mark stand.
struct RowLayout {
  double height = 34.0, value = 11.0, mark = 23.0;
};

// The value stands beside the name, or, where that leaves one of the plot's names too little room, below it.
RowLayout layout_of(const RowPlot& plot) {
  constexpr RowLayout below{.height = 48.0, .value = 25.0, .mark = 37.0};
  if (plot.value_below) return below;
  for (const RowGroup& group : plot.groups)
    for (const Row& row : group.rows)
      if (!row.value.empty() && width_of(row.name) + character_width + width_of(row.value) > width) return below;
  return {};
}

std::vector<double> numbers_of(const Row& row) {
  std::vector<double> numbers = row.ticks;
  for (const auto& number : {row.centre, row.low, row.high, row.inner_low, row.inner_high})
    if (number) numbers.push_back(*number);
  return numbers;
}

std::vector<double> numbers_of(const RowPlot& plot) {
  std::vector<double> numbers = plot.reached;
  for (const RowGroup& group : plot.groups)
    for (const Row& row : group.rows) {
      const std::vector<double> own = numbers_of(row);
      numbers.insert(numbers.end(), own.begin(), own.end());
    }
  return numbers;
}

Axis axis_of(const RowPlot& plot) {
  double low = std::numeric_limits<double>::infinity(), high = -low;
  for (const double number : numbers_of(plot)) {
    low = std::min(low, number);
    high = std::max(high, number);
  }
  if (plot.logarithmic) return Axis::logarithmic(low, high, side, width - side);
  if (plot.zero_line) {
    high = std::max({std::abs(low), std::abs(high), 1.15 * plot.margin.value_or(0.0)});
    low = -high;
  }
  return Axis::linear(low, high, side, width - side, 6);
}

double height_of(const RowPlot& plot, const RowLayout& layout) {
  double height = top;
  for (const RowGroup& group : plot.groups)
    height += (group.heading.empty() ? 0.0 : heading_height) + layout.height * static_cast<double>(group.rows.size());
  return height;
}

void draw_axis(Drawing& drawing, const RowPlot& plot, const Axis& axis, double bottom) {
  if (plot.margin)
    drawing.rectangle("margin", {axis.place(-*plot.margin), top}, axis.place(*plot.margin) - axis.place(-*plot.margin),
                      bottom - top);
  std::vector<Label> labels;
  for (const Tick& tick : axis.ticks()) {
    const double at = axis.place(tick.value);
    drawing.line(plot.zero_line && tick.label == "0" ? "zero" : "grid", {at, top}, {at, bottom + 4.0});
    labels.push_back({at, tick.label});
  }
  for (const Label& label : with_room(labels))
    drawing.text("tick", {label.at, bottom + 16.0}, Anchor::middle, label.text);
  drawing.text("label", {width / 2.0, bottom + 32.0}, Anchor::middle, fitted(plot.x_label, width));
}

void draw_row(Drawing& drawing, const Row& row, const Axis& axis, const RowLayout& layout, double y) {
  drawing.text("name", {0.0, y + 11.0}, Anchor::start, fitted(row.name, width));
  if (!row.value.empty()) drawing.text("value", {width, y + layout.value}, Anchor::end, row.value);
  if (!row.centre) return;
  const double middle = y + layout.mark;
  const std::string style = series_class(row.arm);
  if (row.pooled && row.low && row.high) {
    const auto corner = [&](double value, double offset) {
      return coordinate(axis.place(value)) + " " + coordinate(middle + offset);
    };
    drawing.path("mark " + style, "M" + corner(*row.low, 0.0) + "L" + corner(*row.centre, -5.0) + "L" +
                                      corner(*row.high, 0.0) + "L" + corner(*row.centre, 5.0) + "z");
    return;
  }
  if (row.low && row.high)
    drawing.line("whisker " + style, {axis.place(*row.low), middle}, {axis.place(*row.high), middle});
  if (row.inner_low && row.inner_high)
    drawing.line("thick " + style, {axis.place(*row.inner_low), middle}, {axis.place(*row.inner_high), middle});
  for (const double tick : row.ticks)
    drawing.line("whisker " + style, {axis.place(tick), middle - 4.0}, {axis.place(tick), middle + 4.0});
  drawing.markup(mark_of(row.arm, {axis.place(*row.centre), middle}));
}

}  // namespace

std::vector<RowPlot> sheets_of(const RowPlot& plot) {
  const RowLayout layout = layout_of(plot);
  if (height_of(plot, layout) <= tallest) return {plot};
  RowPlot empty = plot;
  empty.groups.clear();
  empty.reached = numbers_of(plot);
  empty.value_below = layout.value > RowLayout().value;
  std::vector<RowPlot> sheets = {empty};
  double height = top;
  for (const RowGroup& group : plot.groups)
    for (const Row& row : group.rows) {
      const bool begins = &row == &group.rows.front();
      const double whole = heading_height + layout.height * static_cast<double>(group.rows.size());
      // A group stays whole where a sheet of its own holds it.
      const double needed = begins && top + whole <= tallest ? whole : layout.height + (begins ? heading_height : 0.0);
      if (height + needed > tallest) {
        sheets.push_back(empty);
        height = top;
      }
      if (begins || sheets.back().groups.empty()) {
        sheets.back().groups.push_back({group.heading, {}});
        height += heading_height;
      }
      sheets.back().groups.back().rows.push_back(row);
      height += layout.height;
    }
  for (std::size_t i = 1; i < sheets.size(); ++i) sheets[i].title.id += fmt::format("-{}", i + 1);
  for (std::size_t i = 0; i < sheets.size(); ++i)
    sheets[i].title.title += fmt::format(" ({} of {})", i + 1, sheets.size());
  return sheets;
}

std::string row_plot(const RowPlot& plot) {
  const bool any = std::any_of(plot.groups.begin(), plot.groups.end(), [](const RowGroup& group) {
    return std::any_of(group.rows.begin(), group.rows.end(), [](const Row& row) { return row.centre.has_value(); });
  });
  if (!any) return "";
  Drawing drawing(plot.title);
  const Axis axis = axis_of(plot);
  const RowLayout layout = layout_of(plot);
  const double bottom = height_of(plot, layout);
  draw_axis(drawing, plot, axis, bottom);
  double y = top;
  for (const RowGroup& group : plot.groups) {
    if (!group.heading.empty()) {
      drawing.text("heading", {0.0, y + 14.0}, Anchor::start, fitted(group.heading, width));
      y += heading_height;
    }
    for (const Row& row : group.rows) {
      draw_row(drawing, row, axis, layout, y);
      y += layout.height;
    }
  }
  return drawing.finished(bottom + 38.0);
}

}  // namespace replayeval::reports::html::svg
