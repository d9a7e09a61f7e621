#include "reports/html/svg/heat_map.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

namespace replayeval::reports::html::svg {
namespace {

constexpr double top = 22.0;

struct Layout {
  double left, column_width, row_height, bottom;
};

Layout layout_of(const HeatMap& map) {
  double widest = 0.0;
  for (const std::string& row : map.rows) widest = std::max(widest, width_of(row));
  const double left = std::min(widest + 6.0, width / 3.0);
  return {left, (width - left - 1.0) / static_cast<double>(map.columns.size()), map.row_height,
          top + map.row_height * static_cast<double>(map.rows.size())};
}

bool labels_fit(const HeatMap& map, const Layout& layout) {
  return layout.row_height >= line_height &&
         std::all_of(map.cells.begin(), map.cells.end(),
                     [&](const HeatMap::Cell& cell) { return width_of(cell.label) + 2.0 <= layout.column_width; });
}

void draw_names(Drawing& drawing, const HeatMap& map, const Layout& layout) {
  std::vector<Label> columns;
  for (std::size_t c = 0; c < map.columns.size(); ++c)
    columns.push_back({layout.left + layout.column_width * (static_cast<double>(c) + 0.5), map.columns[c]});
  for (const Label& label : with_room(columns))
    drawing.text("tick", {label.at, layout.bottom + 14.0}, Anchor::middle, label.text);
  const auto every = static_cast<std::size_t>(std::ceil(text_height / layout.row_height));
  for (std::size_t r = 0; r < map.rows.size(); r += every)
    drawing.text("tick",
                 {layout.left - 4.0, top + layout.row_height * (static_cast<double>(r) + 0.5) + text_height * 0.36},
                 Anchor::end, fitted(map.rows[r], layout.left - 4.0));
  drawing.text("label", {0.0, 11.0}, Anchor::start, map.y_label);
  drawing.text("label", {(layout.left + width) / 2.0, layout.bottom + 30.0}, Anchor::middle, map.x_label);
}

void draw_labelled_cells(Drawing& drawing, const HeatMap& map, const Layout& layout) {
  for (const HeatMap::Cell& cell : map.cells) {
    const Point corner{layout.left + layout.column_width * static_cast<double>(cell.column),
                       top + layout.row_height * static_cast<double>(cell.row)};
    drawing.markup(fmt::format("<g class=\"cell {}\">", cell.css_class));
    if (!cell.title.empty()) drawing.markup(text_element("title", {}, cell.title));
    drawing.rectangle("heat", corner, layout.column_width, layout.row_height);
    drawing.text("cell", {corner.x + layout.column_width / 2.0, corner.y + layout.row_height / 2.0 + 4.0},
                 Anchor::middle, cell.label);
    drawing.markup("</g>");
  }
}

// Many cells: one path a colour, in units of cells, with neighbours of one colour joined.
void draw_plain_cells(Drawing& drawing, const HeatMap& map, const Layout& layout) {
  std::map<std::size_t, std::map<std::size_t, std::string>> rows;
  for (const HeatMap::Cell& cell : map.cells) rows[cell.row][cell.column] = cell.css_class;
  std::map<std::string, std::string> paths;
  for (const auto& [row, cells] : rows) {
    for (auto cell = cells.begin(); cell != cells.end();) {
      auto end = std::next(cell);
      std::size_t run = 1;
      while (end != cells.end() && end->first == cell->first + run && end->second == cell->second) ++end, ++run;
      paths[cell->second] += fmt::format("M{} {}h{}v1h-{}z", cell->first, row, run, run);
      cell = end;
    }
  }
  drawing.markup(fmt::format("<g transform=\"translate({} {}) scale({} {})\">", coordinate(layout.left),
                             coordinate(top), fmt::format("{:.5g}", layout.column_width),
                             coordinate(layout.row_height)));
  for (const auto& [css_class, commands] : paths) drawing.path("heat " + css_class, commands);
  drawing.markup("</g>");
}

double draw_scale(Drawing& drawing, const HeatMap& map, double y) {
  if (map.scale == nullptr) return 0.0;
  const double low_width = width_of(map.low_label), high_width = width_of(map.high_label);
  const double left = low_width + 6.0, right = width - high_width - 6.0;
  const double step = std::min(22.0, (right - left) / heat_steps);
  drawing.markup("<g class=\"legend\">");
  drawing.text("tick", {0.0, y + 11.0}, Anchor::start, map.low_label);
  for (int i = 0; i < heat_steps; ++i)
    drawing.rectangle("heat " + map.scale->step_class(i), {left + step * i, y + 1.0}, step, 12.0);
  drawing.text("tick", {left + step * heat_steps + 6.0, y + 11.0}, Anchor::start, map.high_label);
  drawing.markup("</g>");
  return 18.0;
}

}  // namespace

HeatScale HeatScale::linear(double low, double high) { return {Kind::linear, low, high}; }
HeatScale HeatScale::logarithmic(double low, double high) { return {Kind::logarithmic, low, high}; }
HeatScale HeatScale::two_sided(double reach) { return {Kind::two_sided, -reach, reach}; }

std::string HeatScale::step_class(int step) const {
  return fmt::format("{}{}", kind_ == Kind::two_sided ? 'd' : 'h', step);
}

std::string HeatScale::css_class(double value) const {
  const double clamped = std::clamp(value, low_, high_);
  double share = high_ > low_ ? (clamped - low_) / (high_ - low_) : 0.5;
  if (kind_ == Kind::logarithmic && high_ > low_) share = std::log(clamped / low_) / std::log(high_ / low_);
  // Both ends of a two-sided scale have a step as wide as the others', and zero has the middle one to itself.
  if (kind_ == Kind::two_sided && value != 0.0) {
    const int away =
        std::clamp(static_cast<int>(std::ceil(std::abs(clamped) / high_ * (heat_steps / 2))), 1, heat_steps / 2);
    return step_class(heat_steps / 2 + (value < 0.0 ? -away : away));
  }
  return step_class(std::min(heat_steps - 1, static_cast<int>(share * heat_steps)));
}

std::string heat_map(const HeatMap& map) {
  if (map.cells.empty()) return "";
  Drawing drawing(map.title);
  const Layout layout = layout_of(map);
  draw_names(drawing, map, layout);
  if (labels_fit(map, layout) && !map.cells.front().label.empty()) {
    draw_labelled_cells(drawing, map, layout);
  } else {
    draw_plain_cells(drawing, map, layout);
  }
  const double legend_top = layout.bottom + 40.0;
  return drawing.finished(legend_top + draw_scale(drawing, map, legend_top));
}

}  // namespace replayeval::reports::html::svg
