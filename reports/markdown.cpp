#include "reports/markdown.h"

#include <fmt/format.h>

#include "reports/atomic_file.h"
#include "reports/markdown_sections.h"
#include "reports/markdown_table.h"
#include "reports/missing_workloads.h"
#include "reports/results_io.h"
#include "reports/task_family_table.h"

namespace replayeval::reports {
namespace markdown {

std::string figures(const Workload& workload, const Figures& drawn) {
  std::string text;
  for (const Figure& figure : drawn.drawn) {
    if (figure.workload == workload.name) text += fmt::format("![{}]({})\n\n", escaped(figure.title), figure.file);
  }
  if (!text.empty()) {
    text += "Each figure is there as PDF, too, with its data and the gnuplot script beside it.";
    if (!workload.state_errors.empty())
      text += " An arm without any error has no place on a logarithmic axis and is left out.";
    text += "\n";
  }
  if (!drawn.note.empty()) text += fmt::format("No figures: {}.\n", escaped(drawn.note));
  return text.empty() ? "" : "### Figures\n\n" + text;
}

}  // namespace markdown

std::string markdown_report(const Results& results, const Figures& drawn) {
  std::string text =
      fmt::format("# ReplayEval: {}\n\nCheckpoint {} ({}), baseline {}.\n",
                  escaped(results.config.value("name", "results")), code(results.checkpoint.value("path", "?")),
                  escaped(results.checkpoint.value("model_type", "?")), code(results.baseline));
  const std::initializer_list<std::string (*)(const Results&, const Workload&)> sections = {
      markdown::verdicts,  markdown::summary,     markdown::compared, markdown::deltas, markdown::divergence,
      markdown::positions, markdown::state_error, markdown::storage,  markdown::speed};
  const std::initializer_list<std::string (*)(const Results&, const Workload&)> of_recall = {
      markdown::compared, markdown::recall, markdown::storage, markdown::speed};
  const std::initializer_list<std::string (*)(const Results&, const Workload&)> of_tasks = {
      markdown::verdicts, markdown::task,    markdown::generation, markdown::compared,
      markdown::deltas,   markdown::storage, markdown::speed};
  const std::initializer_list<std::string (*)(const Results&, const Workload&)> of_generation = {
      markdown::verdicts, markdown::generation, markdown::compared,
      markdown::deltas,   markdown::storage,    markdown::speed};
  const std::initializer_list<std::string (*)(const Results&, const Workload&)> of_churn = {markdown::compared,
                                                                                            markdown::churn};
  const auto sections_of = [&](const std::string& kind) {
    if (kind == "recall") return of_recall;
    if (kind == "task") return of_tasks;
    if (kind == "churn") return of_churn;
    return kind == "generation" ? of_generation : sections;
  };
  for (const Workload& workload : results.workloads) {
    text += fmt::format("\n## {} ({})\n", escaped(workload.name), workload.kind);
    for (const auto& section : sections_of(workload.kind)) {
      if (const std::string part = section(results, workload); !part.empty()) text += "\n" + part;
    }
    if (const std::string part = markdown::figures(workload, drawn); !part.empty()) text += "\n" + part;
  }
  if (const std::string tasks = markdown::task_families(results); !tasks.empty()) text += "\n" + tasks;
  for (const std::string& missing : missing_workloads(results))
    text += fmt::format("\n## {}\n\nNot there: this result is of a part of its config.\n", escaped(missing));
  return text + "\n" + markdown::provenance(results);
}

void write_markdown_report(const Results& results, const std::filesystem::path& folder) {
  std::error_code failure;
  std::filesystem::create_directories(folder, failure);
  if (failure) throw ResultsError(fmt::format("{}: cannot be made: {}", folder.string(), failure.message()));
  const Figures drawn = draw_figures(results, folder);
  write_file_atomically(folder / "report.md", markdown_report(results, drawn));
}

}  // namespace replayeval::reports
