// Figures as SVG and PDF, drawn by gnuplot.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "reports/results.h"

namespace replayeval::reports {

struct Figure {
  std::string file;  // the SVG, relative to the report's folder; the PDF lies beside it
  std::string title;
  std::string workload;
};

struct Figures {
  std::vector<Figure> drawn;
  std::string note;  // why figures are missing (gnuplot is not installed, ...); empty when all were drawn
};

// Draws perplexity delta by position, state error by position and recall by length and depth into folder/figures, with
// data and scripts beside them.
// A gnuplot that is missing or fails ends in `note`; an unwritable folder throws ResultsError.
Figures draw_figures(const Results& results, const std::filesystem::path& folder);

}  // namespace replayeval::reports
