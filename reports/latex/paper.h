// What a two-column paper takes from a run: a LaTeX fragment a table with its Markdown and CSV twins, figures as PDF,
// and a document that shows all of them.
#pragma once

#include <filesystem>

#include "reports/figures.h"
#include "reports/results.h"

namespace replayeval::reports {

// Writes folder/latex/NAME.{tex,md,csv} for each table, and folder/latex/paper.tex, which pdflatex makes a document of,
// with the figures that are drawn in folder. Throws ResultsError when the folder cannot be written.
void write_latex(const Results& results, const Figures& drawn, const std::filesystem::path& folder);

}  // namespace replayeval::reports
