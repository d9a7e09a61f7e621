// Curves of several arms over one quantity, with bands where there are intervals.
#pragma once

#include <string>
#include <vector>

#include "reports/curves.h"
#include "reports/html/svg/axis.h"
#include "reports/html/svg/drawing.h"

namespace replayeval::reports::html::svg {

struct LineChart {
  Title title;
  std::string x_label, y_label;
  std::vector<Curve> curves;
  bool logarithmic_y = false;  // all values above zero
  bool zero_line = false;      // and the y axis holds zero
  std::vector<Tick> x_ticks;   // where x is not a plain number; the range is theirs, and half a step on either side
  std::optional<double> y_low, y_high;  // the least range to show
};

// Puts x, at least 1, on a logarithmic axis with a tick at each place that a curve has a point at: what is measured at
// powers of two.
void spread_by_doubling(LineChart& chart);

std::string line_chart(const LineChart& chart);  // "" where there is nothing to draw

}  // namespace replayeval::reports::html::svg
