// Figures of a page: a drawing with its caption, and the numbers behind it on request.
#pragma once

#include <string>

#include "reports/html/svg/row_plot.h"

namespace replayeval::reports::html {

struct Figure {
  std::string svg;      // "": no figure
  std::string title;    // of the caption
  std::string caption;  // a sentence more, plain text; may be empty
  std::string data;     // markup of a table; "" where the section shows the numbers already
};

std::string figure(const Figure& figure);  // "" without an svg
// A figure, or several where the plot is too tall for a sheet of paper.
std::string row_figures(const svg::RowPlot& plot, const std::string& caption);
std::string side_by_side(const std::string& figures);  // as many a row as fit; "" of ""

}  // namespace replayeval::reports::html
