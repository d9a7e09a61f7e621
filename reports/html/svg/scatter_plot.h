// One mark an arm: what it costs in quality against what it brings in speed, with the frontier that nothing beats.
#pragma once

#include <string>
#include <vector>

#include "reports/html/svg/drawing.h"

namespace replayeval::reports::html::svg {

struct ScatterPlot {
  struct Mark {
    std::size_t arm = 0;
    std::string name;
    double x = 0.0;  // more is better
    double y = 0.0;  // less is better, not below zero
  };
  Title title;
  std::string x_label, y_label;
  std::vector<Mark> marks;
};

// y is logarithmic, with a strip at its foot for zero. "" without marks.
std::string scatter_plot(const ScatterPlot& plot);

// Those that no other mark beats in one of the two without being worse in the other, by rising x.
std::vector<ScatterPlot::Mark> frontier(std::vector<ScatterPlot::Mark> marks);

}  // namespace replayeval::reports::html::svg
