// What a two-column paper takes from a run: a LaTeX fragment a table with its Markdown and CSV twins, figures as PDF,
// and a document that shows all of them.
#pragma once

#include <filesystem>

#include "reports/results.h"

namespace replayeval::reports {

// Writes folder/latex/NAME.{tex,md,csv} for each table, folder/figures/*.pdf, and folder/latex/paper.tex, which
// pdflatex makes a document of. Throws ResultsError when the folder cannot be written.
void write_latex(const Results& results, const std::filesystem::path& folder);

}  // namespace replayeval::reports
