#include "reports/markdown.h"

#include <fmt/format.h>

#include "reports/atomic_file.h"
#include "reports/markdown_blocks.h"
#include "reports/missing_workloads.h"
#include "reports/results_io.h"
#include "reports/sections.h"

namespace replayeval::reports {
namespace {

std::string figures(const Workload& workload, const Figures& drawn) {
  std::string text;
  for (const Figure& figure : drawn.drawn) {
    if (figure.workload == workload.name)
      text += fmt::format("![{}]({})\n\n", markdown::text_of(figure.title), figure.file);
  }
  if (!text.empty()) {
    text += "Each figure is there as PDF, too, with its data and the gnuplot script beside it.";
    if (!workload.state_errors.empty())
      text += " An arm without any error has no place on a logarithmic axis and is left out.";
    text += "\n";
  }
  if (!drawn.note.empty()) text += fmt::format("No figures: {}.\n", markdown::text_of(drawn.note));
  return text.empty() ? "" : "\n### Figures\n\n" + text;
}

Blocks workload_blocks(const Results& results, const Workload& workload) {
  Blocks blocks = {Heading{2, fmt::format("{} ({})", workload.name, workload.kind)}};
  for (const sections::Section section : sections::of_kind(workload.kind)) append(blocks, section(results, workload));
  return blocks;
}

Blocks closing_blocks(const Results& results) {
  Blocks blocks = sections::task_families(results);
  for (const std::string& missing : missing_workloads(results))
    append(blocks, {Heading{2, missing}, Paragraph{"Not there: this result is of a part of its config."}});
  append(blocks, sections::provenance(results));
  return blocks;
}

void make_folder(const std::filesystem::path& folder) {
  std::error_code failure;
  std::filesystem::create_directories(folder, failure);
  if (failure) throw ResultsError(fmt::format("{}: cannot be made: {}", folder.string(), failure.message()));
}

}  // namespace

std::string markdown_report(const Results& results, const Figures& drawn) {
  std::string text =
      markdown::blocks({Heading{1, fmt::format("ReplayEval: {}", results.config.value("name", "results"))},
                        Paragraph{Text("Checkpoint ") + code(results.checkpoint.value("path", "?")) +
                                  fmt::format(" ({}), baseline ", results.checkpoint.value("model_type", "?")) +
                                  code(results.baseline) + "."}});
  if (const Blocks warning = sections::contradiction(results); !warning.empty())
    text += "\n" + markdown::blocks(warning);
  for (const Workload& workload : results.workloads)
    text += "\n" + markdown::blocks(workload_blocks(results, workload)) + figures(workload, drawn);
  return text + "\n" + markdown::blocks(closing_blocks(results));
}

void write_markdown_report(const Results& results, const std::filesystem::path& folder) {
  make_folder(folder);
  write_markdown_report(results, draw_figures(results, folder), folder);
}

void write_markdown_report(const Results& results, const Figures& drawn, const std::filesystem::path& folder) {
  make_folder(folder);
  write_file_atomically(folder / "report.md", markdown_report(results, drawn));
}

}  // namespace replayeval::reports
