// A grid of coloured cells. Colours are nine steps of a scale (classes "h0" … "h8" one way, "d0" … "d8" to both sides
// of the middle), which the page's style defines for light and dark.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "reports/html/svg/drawing.h"

namespace replayeval::reports::html::svg {

inline constexpr int heat_steps = 9;

class HeatScale {
 public:
  static HeatScale linear(double low, double high);
  static HeatScale logarithmic(double low, double high);  // both above zero
  static HeatScale two_sided(double reach);               // from -reach to +reach, zero in the middle step

  std::string css_class(double value) const;
  // The values at both ends, for the legend.
  double low() const { return low_; }
  double high() const { return high_; }
  std::string step_class(int step) const;

 private:
  enum class Kind { linear, logarithmic, two_sided };
  HeatScale(Kind kind, double low, double high) : kind_(kind), low_(low), high_(high) {}
  Kind kind_;
  double low_, high_;
};

struct HeatMap {
  struct Cell {
    std::size_t column = 0, row = 0;
    std::string css_class;   // of a HeatScale, or "none" for a cell without a value
    std::string label;       // shown where all labels fit
    std::string title = {};  // all there is to say of it, for those who point at it or hear it; may be empty
  };
  Title title;
  std::string x_label, y_label;
  std::vector<std::string> columns, rows;  // names, left to right and top to bottom
  std::vector<Cell> cells;
  const HeatScale* scale = nullptr;   // for the legend
  std::string low_label, high_label;  // at its ends
  double row_height = 26.0;
};

std::string heat_map(const HeatMap& map);  // "" without cells

}  // namespace replayeval::reports::html::svg
