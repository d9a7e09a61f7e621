// How far states are from what they should be: by tokens decoded, and by layer and head.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "reports/curves.h"
#include "reports/html/blocks.h"
#include "reports/html/figure.h"
#include "reports/html/figures.h"
#include "reports/html/svg/heat_map.h"
#include "reports/html/svg/line_chart.h"
#include "reports/numbers.h"

namespace replayeval::reports::html {
namespace {

struct Depth {
  const char *name, *words;
};

constexpr Depth depths[] = {{"gold", "against the float64 recurrence"},
                            {"propagated", "each arm on its own stream"},
                            {"local", "on the baseline's inputs"}};

// By layer, at the last position measured.
using Layers = std::map<std::int64_t, const StateError*>;

Layers last_layers(const Workload& workload, const std::string& arm, const std::string& depth) {
  Layers layers;
  for (const StateError& error : workload.state_errors) {
    if (error.arm != arm || error.depth != depth || error.head_relative_frobenius.empty()) continue;
    const StateError*& last = layers[error.layer];
    if (last == nullptr || last->position < error.position) last = &error;
  }
  return layers;
}

std::string curve_figure(const Shown& shown, const Depth& depth) {
  const std::string title = fmt::format("State error of the worst layer, {}", depth.words);
  svg::LineChart chart;
  chart.title = {fmt::format("{}-state-{}", shown.id, depth.name), title,
                 "A curve an arm, on a logarithmic axis: the relative Frobenius error of the state in the layer where "
                 "it is largest, by the number of tokens decoded."};
  chart.x_label = "tokens decoded, logarithmic";
  chart.y_label = "relative Frobenius error";
  chart.curves = state_error_by_position(shown.results, shown.workload, depth.name);
  chart.logarithmic_y = true;
  svg::spread_by_doubling(chart);
  return figure({svg::line_chart(chart), title, "Positions without any error are left out.", ""});
}

Table head_table(const Layers& layers) {
  Table table({"layer", "all heads", "least head", "median head", "worst head", "which"});
  for (const auto& [layer, error] : layers) {
    std::vector<double> heads = error->head_relative_frobenius;
    const auto worst = std::max_element(heads.begin(), heads.end()) - heads.begin();
    std::sort(heads.begin(), heads.end());
    table.add_row({std::to_string(layer), significant(error->relative_frobenius, 3), significant(heads.front(), 3),
                   significant(heads[heads.size() / 2], 3), significant(heads.back(), 3), std::to_string(worst)});
  }
  return table;
}

void add_cells(svg::HeatMap& map, const Layers& layers, const svg::HeatScale& scale) {
  std::size_t row = 0, columns = 0;
  for (const auto& [layer, error] : layers) {
    map.rows.push_back(std::to_string(layer));
    const auto& heads = error->head_relative_frobenius;
    for (std::size_t head = 0; head < heads.size(); ++head)
      map.cells.push_back({head, row, heads[head] > 0.0 ? scale.css_class(heads[head]) : "none", ""});
    columns = std::max(columns, heads.size());
    ++row;
  }
  for (std::size_t head = 0; head < columns; ++head) map.columns.push_back(std::to_string(head));
}

std::string head_map(const Shown& shown, std::size_t arm, const Depth& depth) {
  const std::string name = arm_names(shown.results).at(arm);
  const Layers layers = last_layers(shown.workload, name, depth.name);
  double low = 0.0, high = 0.0;
  std::int64_t position = 0;
  for (const auto& [layer, error] : layers) {
    position = std::max(position, error->position);
    for (const double head : error->head_relative_frobenius) {
      if (head > 0.0 && (low == 0.0 || head < low)) low = head;
      high = std::max(high, head);
    }
  }
  if (high == 0.0) return "";
  const svg::HeatScale scale = svg::HeatScale::logarithmic(low, high);
  const std::string title = fmt::format("{}: state error by layer and head", name);
  svg::HeatMap map;
  map.title = {
      fmt::format("{}-heads{}", shown.id, arm), title,
      fmt::format("A row a layer and a column a head; the darker (on dark ground: the lighter), the larger the "
                  "relative Frobenius error after {} tokens, {}; from {} to {}, logarithmic.",
                  count_text(position), depth.words, significant(low, 2), significant(high, 2))};
  map.x_label = "head";
  map.y_label = "layer";
  add_cells(map, layers, scale);
  map.scale = &scale;
  map.low_label = significant(low, 2);
  map.high_label = significant(high, 2);
  map.row_height = std::clamp(240.0 / static_cast<double>(layers.size()), 7.0, 20.0);
  return figure(
      {svg::heat_map(map), title,
       fmt::format("After {} tokens, {}; each map has its own logarithmic scale.", count_text(position), depth.words),
       table_of(head_table(layers))});
}

// At the first depth that was measured.
std::string head_maps(const Shown& shown) {
  for (const Depth& depth : depths) {
    std::string figures;
    for (std::size_t arm = 0; arm < shown.results.arms.size(); ++arm) figures += head_map(shown, arm, depth);
    if (!figures.empty()) return figures;
  }
  return "";
}

}  // namespace

std::string state_error_figures(const Shown& shown) {
  std::string curves;
  for (const Depth& depth : depths) curves += curve_figure(shown, depth);
  return side_by_side(curves) + side_by_side(head_maps(shown));
}

}  // namespace replayeval::reports::html
