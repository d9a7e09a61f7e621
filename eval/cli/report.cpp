#include "eval/cli/report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "eval/comparator/on_stderr.h"
#include "eval/comparator/result_folder.h"
#include "eval/comparator/tasks/task_families.h"
#include "reports/bench_file.h"
#include "reports/consistency.h"
#include "reports/figure_files.h"
#include "reports/figures.h"
#include "reports/findings.h"
#include "reports/html/report.h"
#include "reports/latex/paper.h"
#include "reports/markdown.h"
#include "reports/missing_workloads.h"
#include "reports/numbers.h"
#include "reports/results_io.h"
#include "reports/table.h"

namespace replayeval {
namespace {

struct Options {
  std::vector<std::string> results, benches, memories;
  std::vector<std::string> formats;  // as asked for
  std::string output;
  bool html_flag = false, json = false, allow_inconsistent = false;

  bool markdown() const { return none() || asked("markdown"); }
  bool latex() const { return asked("latex"); }
  bool html() const { return none() || html_flag || asked("html"); }

  bool none() const { return formats.empty() && !html_flag; }

 private:
  bool asked(const char* format) const { return std::find(formats.begin(), formats.end(), format) != formats.end(); }
};

// A result's own folder: where its report belongs unless --output says otherwise.
std::filesystem::path folder_of(const std::filesystem::path& result) {
  if (std::filesystem::is_directory(result)) return result;
  return result.has_parent_path() ? result.parent_path() : ".";
}

reports::HtmlOptions html_options(const Options& options) {
  reports::HtmlOptions html;
  for (const std::string& file : options.benches) html.benches.push_back(reports::load_bench(file));
  if (!options.memories.empty()) html.memories.clear();
  for (const std::string& list : options.memories) {
    std::istringstream amounts(list + ",");  // so that the last one ends like the others, even where it is empty
    for (std::string amount; std::getline(amounts, amount, ',');)
      html.memories.push_back(reports::bytes_of_text(amount));
  }
  return html;
}

// What several result folders become: one run, or runs side by side: on one page in HTML, and in other formats each in
// a folder of its own, as their workloads may have the same names.
struct Reported {
  std::vector<reports::Run> runs;
  std::filesystem::path folder;
  reports::HtmlOptions html;

  // Where the run's own report belongs; the names of runs differ in what is safe in a file's name as well.
  std::filesystem::path folder_of(const reports::Run& run) const {
    return runs.size() == 1 ? folder : folder / reports::safe_name(run.name);
  }
};

void write_own_report(const reports::Run& run, const std::filesystem::path& folder, const Options& options) {
  const reports::Figures drawn = reports::draw_figures(run.results, folder);  // gnuplot's; HTML has its own
  if (options.markdown()) {
    reports::write_markdown_report(run.results, drawn, folder);
    say("Report written to {}\n", (folder / "report.md").string());
  }
  if (options.latex()) {
    reports::write_latex(run.results, drawn, folder);
    say("Tables written to {}\n", (folder / "latex").string());
  }
}

void write_reports(const Reported& reported, const Options& options) {
  if (options.markdown() || options.latex())
    for (const reports::Run& run : reported.runs) write_own_report(run, reported.folder_of(run), options);
  if (options.html()) {
    reports::write_html_report(reported.runs, reported.html, reported.folder);
    say("Report written to {}\n", (reported.folder / "report.html").string());
  }
}

void print_results(const std::vector<reports::Run>& runs, const Options& options) {
  if (options.json) {
    fmt::print("{}\n", reports::to_json(runs.front().results).dump(2));
    return;
  }
  for (const reports::Run& run : runs) {
    if (runs.size() > 1) fmt::print("{}{}\n\n", &run == &runs.front() ? "" : "\n", run.name);
    fmt::print("{}", reports::summary_table(run.results, reports::table_options_for(stdout)));
  }
}

// What only HTML shows.
void say_what_is_not_shown(const Options& options) {
  for (const auto& [name, given] :
       {std::pair("--bench", !options.benches.empty()), std::pair("--memory", !options.memories.empty())})
    if (given && !options.html())
      say("replayeval: warning: {}: only the HTML report shows it; expected --html with it\n", name);
}

// Another run's folder: its own results and report would be replaced.
void check_output(const Options& options) {
  const bool own = options.results.size() == 1 && std::filesystem::exists(options.output) &&
                   std::filesystem::equivalent(options.output, folder_of(options.results.front()));
  if (!own && ResultFolder::is_one(options.output))
    throw reports::ResultsError(fmt::format(
        "--output {}: is the result folder of a run; expected another one, a new one or none", options.output));
}

// Folders of runs side by side: not another run's, and not one for two of them.
void check_own_folders(const Reported& reported) {
  std::map<std::filesystem::path, std::string> taken;
  for (const reports::Run& run : reported.runs) {
    const std::filesystem::path own = reported.folder_of(run);
    const auto [other, first] = taken.emplace(own, run.name);
    if (!first)
      throw reports::ResultsError(
          fmt::format("{}: the folder of both {} and {}; expected runs whose configs have other "
                      "names",
                      own.string(), other->second, run.name));
    if (ResultFolder::is_one(own) && !std::filesystem::equivalent(own, folder_of(run.path)))
      throw reports::ResultsError(
          fmt::format("{}: is the result folder of another run; expected another --output", own.string()));
  }
}

// Parts of a run are reported, and said to be parts.
void say_what_is_missing(const reports::Results& results, const std::string& name) {
  const std::vector<std::string> missing = reports::missing_workloads(results);
  if (!missing.empty())
    say("replayeval: warning: {}: of the config's workloads {} not there: {}\n", name,
        missing.size() == 1 ? "one is" : fmt::format("{} are", missing.size()), fmt::join(missing, ", "));
}

// Parts of one run become one, in the place of the first of them; what is no part of another stands by itself.
std::vector<reports::Run> side_by_side(const std::vector<reports::NamedResults>& all) {
  std::vector<std::vector<reports::NamedResults>> groups;
  for (const reports::NamedResults& one : all) {
    const auto group = std::find_if(groups.begin(), groups.end(), [&](const auto& parts) {
      return std::all_of(parts.begin(), parts.end(), [&](const reports::NamedResults& part) {
        return reports::are_parts_of_one_run(part.results, one.results);
      });
    });
    (group == groups.end() ? groups.emplace_back() : *group).push_back(one);
  }
  std::vector<reports::Run> runs;
  for (const auto& parts : groups) {
    reports::Results results = reports::merge_results(parts);
    if (parts.size() > 1) results.task_families = task_families(results);
    runs.push_back(reports::run_of(results, parts.front().name));
  }
  reports::make_names_unique(runs);
  return runs;
}

// All parts of one run; throws ResultsError otherwise.
reports::Results merged(const std::vector<reports::NamedResults>& all, const Options& options) {
  try {
    reports::Results results = reports::merge_results(all);
    results.task_families = task_families(results);  // of the parts' tasks together
    return results;
  } catch (const reports::ResultsError& difference) {
    throw reports::ResultsError(fmt::format("{}; {}", difference.what(),
                                            options.json ? "--json prints one run's results alone"
                                                         : "with --format (html, markdown, latex) several runs are "
                                                           "reported side by side"));
  }
}

// Why these stand side by side, and where what is written of each by itself goes.
void say_that_they_are_apart(const std::vector<reports::NamedResults>& all, const Reported& reported) {
  try {
    static_cast<void>(reports::merge_results(all));
  } catch (const reports::ResultsError& difference) {
    say("replayeval: note: {}; each run is reported in a folder of its own in {}\n", difference.what(),
        reported.folder.string());
  }
}

// Edited by hand, patched together, or of an A/A control that moved. Where they are asked for, every page says so as
// well.
void check_for_contradictions(const reports::NamedResults& one, bool allowed) {
  const std::string found = reports::contradiction_in(one.results, one.name);
  if (found.empty()) return;
  if (!allowed) throw reports::ResultsError(found + "; --allow-inconsistent reports them with that warning");
  say("replayeval: warning: {}\n", found);
}

void report_command(const Options& options) {
  std::vector<reports::NamedResults> all;  // every one is read before anything is written
  for (const std::string& path : options.results) {
    all.push_back({path, reports::load_results(path)});
    check_for_contradictions(all.back(), options.allow_inconsistent);
  }
  Reported reported{{}, options.output, html_options(options)};
  if (options.output.empty() && all.size() > 1)
    throw reports::ResultsError("report: several results are merged into one report; expected --output DIR for it");
  if (options.output.empty())
    reported.folder = folder_of(options.results.front());
  else
    check_output(options);

  if (all.size() == 1) {
    reported.runs = {reports::run_of(all.front().results, options.results.front())};
  } else if (options.json || options.none()) {  // what a script goes on with: one results.json, or an error
    reported.runs = {reports::run_of(merged(all, options), options.output)};
  } else {
    reported.runs = side_by_side(all);
  }
  if (reported.runs.size() > 1 && (options.markdown() || options.latex())) {
    check_own_folders(reported);
    say_that_they_are_apart(all, reported);
  }
  write_reports(reported, options);
  say_what_is_not_shown(options);
  print_results(reported.runs, options);
  for (const reports::Run& run : reported.runs)
    say_what_is_missing(run.results, reported.runs.size() > 1 ? run.name : reported.folder.string());
  if (all.size() > 1 && reported.runs.size() == 1)
    reports::save_results(reported.runs.front().results, reported.folder / "results.json");
}

}  // namespace

void add_report_command(CLI::App& app) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("report", "Write the reports of results again, and print their table");
  command
      ->add_option(
          "results", options->results,
          "Result folders or results.json files; several are merged, or, with --format, reported side by side where "
          "they are not parts of one run: on one page (html), in a folder a run (markdown, latex)")
      ->required();
  command
      ->add_option(
          "--format", options->formats,
          "What to write: markdown (report.md and its figures), html (report.html), latex (a booktabs table a file in "
          "latex/, each as Markdown and CSV, too, and paper.tex, which shows all); default: markdown,html")
      ->delimiter(',')
      ->check(CLI::IsMember({"markdown", "html", "latex"}));
  command->add_flag("--html", options->html_flag, "The same as --format html; beside --format, one format more");
  command->add_option(
      "--bench", options->benches,
      "JSON files of `bench kernels` or `bench model`, whose speed the HTML report shows beside the runs");
  command->add_option("--memory", options->memories,
                      "Memory for states and rings, to say how many sequences it holds (default 8GiB,24GiB,80GiB)");
  command->add_option("--output", options->output, "Folder to write to (default: the result's own)");
  command->add_flag("--allow-inconsistent", options->allow_inconsistent,
                    "Report results that contradict themselves (edited by hand, say), with a warning on every page; "
                    "without it they are refused");
  command->add_flag("--json", options->json, "Print the (merged) results.json on stdout instead of the table");
  command->callback([options] { report_command(*options); });
}

}  // namespace replayeval
