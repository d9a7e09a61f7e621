// The HTML report: one self-contained file of one run or of several side by side.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "reports/bench_file.h"
#include "reports/findings.h"

namespace replayeval::reports {

struct HtmlOptions {
  std::vector<BenchFile> benches;                                               // decode speed to show beside the runs
  std::vector<double> memories = {8.0 * 0x1p30, 24.0 * 0x1p30, 80.0 * 0x1p30};  // bytes for states and rings
};

// `given` is not empty. Sections that the results hold nothing for are left out.
std::string html_report(const std::vector<Run>& given, const HtmlOptions& options);

// Writes folder/report.html (all or nothing). Throws ResultsError when the folder cannot be written.
void write_html_report(const std::vector<Run>& runs, const HtmlOptions& options, const std::filesystem::path& folder);

}  // namespace replayeval::reports
