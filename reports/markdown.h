// The Markdown report.
#pragma once

#include <filesystem>
#include <string>

#include "reports/figures.h"
#include "reports/results.h"

namespace replayeval::reports {

std::string markdown_report(const Results& results, const Figures& drawn);

// Writes folder/report.md (all or nothing), which shows the figures that are drawn in folder. Throws ResultsError when
// the folder cannot be written.
void write_markdown_report(const Results& results, const Figures& drawn, const std::filesystem::path& folder);
// The same; draws the figures first.
void write_markdown_report(const Results& results, const std::filesystem::path& folder);

}  // namespace replayeval::reports
