// Figures as SVG, drawn by gnuplot.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "reports/results.h"

namespace replayeval::reports {

struct Figure {
  std::string file;  // relative to the report's folder
  std::string title;
  std::string workload;
};

struct Figures {
  std::vector<Figure> drawn;
  std::string note;  // why figures are missing (gnuplot is not installed, ...); empty when all were drawn
};

// Draws perplexity delta by position and state error by position into folder/figures, with the data files beside them.
// A gnuplot that is missing or fails ends in `note`; an unwritable folder throws ResultsError.
Figures draw_figures(const Results& results, const std::filesystem::path& folder);

}  // namespace replayeval::reports
