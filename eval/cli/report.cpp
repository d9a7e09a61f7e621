#include "eval/cli/report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "eval/comparator/tasks/task_families.h"
#include "reports/markdown.h"
#include "reports/missing_workloads.h"
#include "reports/results_io.h"
#include "reports/table.h"

namespace replayeval {
namespace {

struct Options {
  std::vector<std::string> results;
  std::string format = "markdown", output;
  bool json = false;
};

// A result's own folder: where its report belongs unless --output says otherwise.
std::filesystem::path folder_of(const std::filesystem::path& result) {
  if (std::filesystem::is_directory(result)) return result;
  return result.has_parent_path() ? result.parent_path() : ".";
}

void write_one(const reports::Results& results, const std::filesystem::path& folder, const Options& options) {
  reports::write_markdown_report(results, folder);
  if (options.json) {
    fmt::print("{}\n", reports::to_json(results).dump(2));
  } else {
    fmt::print("{}", reports::summary_table(results, reports::table_options_for(stdout)));
  }
  fmt::print(stderr, "Report written to {}\n", (folder / "report.md").string());
}

// Parts of a run are reported, and said to be parts.
void say_what_is_missing(const reports::Results& results, const std::string& name) {
  const std::vector<std::string> missing = reports::missing_workloads(results);
  if (!missing.empty())
    fmt::print(stderr, "replayeval: warning: {}: of the config's workloads {} not there: {}\n", name,
               missing.size() == 1 ? "one is" : fmt::format("{} are", missing.size()), fmt::join(missing, ", "));
}

void report_command(const Options& options) {
  std::vector<reports::NamedResults> all;  // every one is read before anything is written
  for (const std::string& path : options.results) all.push_back({path, reports::load_results(path)});
  if (options.output.empty() && all.size() == 1) {
    write_one(all.front().results, folder_of(options.results.front()), options);
    say_what_is_missing(all.front().results, options.results.front());
    return;
  }
  if (options.output.empty()) {
    throw reports::ResultsError("report: several results are merged into one report; expected --output DIR for it");
  }
  reports::Results merged = reports::merge_results(all);
  merged.task_families = task_families(merged);  // of the parts' tasks together
  write_one(merged, options.output, options);
  say_what_is_missing(merged, options.output);
  if (all.size() > 1) reports::save_results(merged, std::filesystem::path(options.output) / "results.json");
}

}  // namespace

void add_report_command(CLI::App& app) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("report", "Write the reports of results again, and print their table");
  command->add_option("results", options->results, "Result folders or results.json files; several are merged")
      ->required();
  command->add_option("--format", options->format, "What to write: markdown (report.md and its figures)")
      ->check(CLI::IsMember({"markdown"}));
  command->add_option("--output", options->output, "Folder to write to (default: the result's own)");
  command->add_flag("--json", options->json, "Print the (merged) results.json on stdout instead of the table");
  command->callback([options] { report_command(*options); });
}

}  // namespace replayeval
