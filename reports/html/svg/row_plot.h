// Rows of intervals over one axis: forest plots and spreads of quantiles. Each row names itself on a line of its own,
// so that long names fit a phone.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "reports/html/svg/axis.h"
#include "reports/html/svg/drawing.h"

namespace replayeval::reports::html::svg {

struct Row {
  std::string name, value;                      // above the mark, left and right or one below the other
  std::size_t arm = 0;                          // decides colour and mark
  std::optional<double> centre;                 // the mark; absent: the row has words alone (`value`)
  std::optional<double> low, high;              // the thin line
  std::optional<double> inner_low, inner_high;  // the thick one
  std::vector<double> ticks;                    // small marks on the line
  bool pooled = false;                          // drawn as a diamond from low to high
};

struct RowGroup {
  std::string heading;  // may be empty
  std::vector<Row> rows;
};

struct RowPlot {
  Title title;
  std::string x_label;
  std::vector<RowGroup> groups;
  bool logarithmic = false;      // then every number is above zero
  bool zero_line = false;        // and zero is in the middle of the axis
  std::optional<double> margin;  // shaded from -margin to +margin
  bool value_below = false;      // of the name in every row, though there be room beside it
  std::vector<double> reached;   // numbers that the axis reaches beside those of the rows
};

// The plot as it is, or, where it is too tall for a sheet of paper, in parts that are not, all on the same axis; ids
// and titles of parts after the first are numbered.
std::vector<RowPlot> sheets_of(const RowPlot& plot);

std::string row_plot(const RowPlot& plot);  // "" where no row has a mark

}  // namespace replayeval::reports::html::svg
