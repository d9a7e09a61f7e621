#include "reports/html/report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "reports/atomic_file.h"
#include "reports/consistency.h"
#include "reports/html/blocks.h"
#include "reports/html/figures.h"
#include "reports/html/markup.h"
#include "reports/html/overview.h"
#include "reports/html/page.h"
#include "reports/html/run_sections.h"
#include "reports/kernel_group.h"
#include "reports/missing_workloads.h"
#include "reports/numbers.h"
#include "reports/results_io.h"
#include "reports/sections.h"
#include "reports/summary.h"

namespace replayeval::reports {
namespace html {
namespace {

using Runs = std::vector<Run>;

// What several runs have in common stands there once, under the names of all of them.
std::string once_for_equal_runs(const Runs& runs, const std::function<std::string(const Run&)>& markup_of) {
  std::vector<std::pair<std::string, std::string>> groups;  // names, markup
  for (const Run& run : runs) {
    const std::string markup = markup_of(run);
    if (markup.empty()) continue;
    const auto found =
        std::find_if(groups.begin(), groups.end(), [&](const auto& group) { return group.second == markup; });
    if (found == groups.end()) {
      groups.emplace_back(run.name, markup);
    } else {
      found->first += ", " + run.name;
    }
  }
  std::string text;
  for (const auto& [names, markup] : groups)
    text += (runs.size() == 1 ? "" : text_element("h3", {}, names) + "\n") + markup;
  return text;
}

// Before the verdict, which rests on these numbers.
std::string contradictions(const Runs& runs) {
  std::string markup;
  for (const Run& run : runs)
    if (const std::string found = contradiction_in(run.results, run.name); !found.empty())
      markup += text_element("p", {{"class", "verdict bad"}, {"role", "alert"}},
                             fmt::format("Do not rely on this page. {}.", found)) +
                "\n";
  return markup;
}

// Many runs' names would fill a telephone.
std::string title_of(const Runs& runs) {
  constexpr std::size_t most_names = 3;
  std::vector<std::string> names;
  for (const Run& run : runs) {
    const std::string name = runs.size() > most_names ? checkpoint_name(run.results) : run.name;
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  return fmt::format("ReplayEval: {}{}", runs.size() > most_names ? fmt::format("{} runs of ", runs.size()) : "",
                     fmt::join(names, ", "));
}

std::string compared_section(const Runs& runs) {
  Table table({"run", "date", "checkpoint", "architecture", "parameters", "baseline", "workloads"}, {1, 2, 3, 5, 6});
  for (const Run& run : runs) {
    const Results& results = run.results;
    std::string workloads;
    for (const Workload& workload : results.workloads) workloads += (workloads.empty() ? "" : ", ") + workload.name;
    const std::string random = results.checkpoint.value("weights", "") == "random" ? " (random weights)" : "";
    table.add_row({run.name, results.environment.value("date", "?").substr(0, 10),
                   code(checkpoint_name(results)) + random, results.checkpoint.value("model_type", "?"),
                   results.checkpoint.contains("parameters")
                       ? count_text(results.checkpoint["parameters"].get<std::int64_t>())
                       : "–",
                   code(results.baseline), workloads});
  }
  std::string markup = table_of(table);
  for (const Run& run : runs)
    for (const std::string& missing : missing_workloads(run.results))
      markup +=
          text_element("p", {{"class", "note"}},
                       fmt::format("{}: {} is not there: this result is of a part of its config.", run.name, missing)) +
          "\n";
  const std::string arms =
      once_for_equal_runs(runs, [](const Run& run) { return table_of(sections::arms(run.results)); });
  return markup + (runs.size() == 1 ? arms : folded("Arms of every run", arms));
}

std::string tasks_section(const Runs& runs) {
  std::string markup = task_figures(runs);
  for (const Run& run : runs)
    for (const Part& part : parts_of(sections::task_families(run.results)))
      markup +=
          folded(runs.size() == 1 ? part.title : fmt::format("{}: {}", run.name, part.title), blocks(part.blocks));
  return markup;
}

std::string memory_section(const Runs& runs, const HtmlOptions& options) {
  const std::string tables = once_for_equal_runs(runs, [&](const Run& run) {
    const Table table = sections::memory(run.results, options.memories);
    return table.empty() ? "" : table_of(table);
  });
  return tables.empty() ? "" : tables + blocks({Paragraph{sections::memory_note()}});
}

std::string bench_section(const HtmlOptions& options) {
  std::string markup;
  const auto add = [&](const Blocks& blocks_of_bench, const std::string& figures) {
    for (const Part& part : parts_of(blocks_of_bench))
      markup += text_element("h3", {}, part.title) + "\n" + figures + blocks(part.blocks);
  };
  std::size_t number = 0;
  for (const BenchFile& file : options.benches)
    if (const auto* model = std::get_if<ModelBench>(&file.bench))
      add(sections::model_bench(*model), model_bench_figures(*model, fmt::format("model{}", number++)));
  number = 0;
  for (const KernelGroup& group : kernel_groups(options.benches))
    add(sections::kernel_bench(group), kernel_bench_figures(group, fmt::format("kernels{}", number++)));
  return markup;
}

std::string provenance_section(const Runs& runs, const HtmlOptions& options) {
  std::string markup;
  for (const Run& run : runs)
    for (const Part& part : parts_of(sections::provenance(run.results)))
      markup += folded(run.name + ": tool, environment, checkpoint, numerics, data, config", blocks(part.blocks));
  if (!options.benches.empty())
    markup += folded("Benchmarks: files and what timed them", table_of(sections::bench_files(options.benches)));
  return markup;
}

}  // namespace
}  // namespace html

std::string html_report(const std::vector<Run>& runs, const HtmlOptions& options) {
  const std::vector<Run> ordered = html::by_checkpoint(runs);
  const std::vector<Finding> all = findings(ordered);
  std::vector<html::PageSection> sections = {
      {"summary", "Summary", html::summary_section(ordered, all)},
      {"findings", "Findings", html::findings_section(ordered, all)},
      {"compared", "What was compared", html::compared_section(ordered)},
      {"runs", "Side by side", ordered.size() > 1 ? html::side_by_side_figures(ordered) : ""},
      {"pareto", "Quality against speed", html::pareto_figures(ordered, options.benches)},
      {"tasks", "Tasks", html::tasks_section(ordered)},
      {"memory", "Memory", html::memory_section(ordered, options)},
      {"speed", "Decode speed", html::bench_section(options)}};
  for (html::PageSection& section : html::run_sections(ordered, all)) sections.push_back(std::move(section));
  sections.push_back({"provenance", "Provenance", html::provenance_section(ordered, options)});
  return html::page(
      {html::title_of(ordered), html::contradictions(ordered) + html::verdict_line(all, "verdict"), sections});
}

void write_html_report(const std::vector<Run>& runs, const HtmlOptions& options, const std::filesystem::path& folder) {
  std::error_code failure;
  std::filesystem::create_directories(folder, failure);
  if (failure) throw ResultsError(fmt::format("{}: cannot be made: {}", folder.string(), failure.message()));
  write_file_atomically(folder / "report.html", html_report(runs, options));
}

}  // namespace replayeval::reports
