#include "reports/html/run_sections.h"

#include <fmt/format.h>

#include <algorithm>

#include "reports/html/blocks.h"
#include "reports/html/markup.h"
#include "reports/html/overview.h"
#include "reports/html/workload_section.h"
#include "reports/summary.h"

namespace replayeval::reports::html {
namespace {

std::string title_of(const Workload& workload) { return fmt::format("{} ({})", workload.name, workload.kind); }

std::string checkpoint_title(const Results& results) {
  return fmt::format("{} ({})", checkpoint_name(results), results.checkpoint.value("model_type", "?"));
}

std::string note_of(const Workload& workload, const std::string& counts) {
  return workload.kind + (counts.empty() ? "" : ": " + counts);
}

std::vector<Finding> of_run(const std::vector<Finding>& findings, const Run& run) {
  std::vector<Finding> own;
  std::copy_if(findings.begin(), findings.end(), std::back_inserter(own),
               [&](const Finding& finding) { return finding.run == run.name; });
  return own;
}

PageSection run_section(const Run& run, std::size_t number, const std::vector<Finding>& findings) {
  PageSection section{.id = fmt::format("run{}", number), .title = run.name, .markup = "", .group = "", .parts = {}};
  section.group = checkpoint_title(run.results);
  section.markup = blocks({Paragraph{Text(fmt::format("Checkpoint {}, {}; baseline ", section.group,
                                                      run.results.environment.value("date", "no date").substr(0, 10))) +
                                     code(run.results.baseline) + "."}}) +
                   verdict_line(of_run(findings, run), "");
  for (std::size_t w = 0; w < run.results.workloads.size(); ++w) {
    const Workload& workload = run.results.workloads[w];
    const std::string id = fmt::format("{}-workload{}", section.id, w);
    section.parts.push_back({.id = id,
                             .title = workload.name,
                             .note = note_of(workload, counts_line(findings, run.name, workload.name)),
                             .markup = workload_section({run.results, workload, id, 4})});
  }
  return section;
}

}  // namespace

std::vector<Run> by_checkpoint(std::vector<Run> runs) {
  std::vector<std::string> order;
  for (const Run& run : runs) order.push_back(checkpoint_title(run.results));
  const auto place = [&](const Run& run) {
    return std::find(order.begin(), order.end(), checkpoint_title(run.results)) - order.begin();
  };
  std::stable_sort(runs.begin(), runs.end(), [&](const Run& a, const Run& b) { return place(a) < place(b); });
  return runs;
}

std::vector<PageSection> run_sections(const std::vector<Run>& runs, const std::vector<Finding>& findings) {
  std::vector<PageSection> sections;
  if (runs.size() == 1) {
    const Results& results = runs.front().results;
    for (std::size_t w = 0; w < results.workloads.size(); ++w) {
      const std::string id = fmt::format("run0-workload{}", w);
      sections.push_back(
          {id, title_of(results.workloads[w]), workload_section({results, results.workloads[w], id, 3})});
    }
    return sections;
  }
  for (std::size_t r = 0; r < runs.size(); ++r) sections.push_back(run_section(runs[r], r, findings));
  return sections;
}

}  // namespace replayeval::reports::html
