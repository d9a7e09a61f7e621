#include "eval/cli/gate.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "eval/comparator/gate_policy.h"
#include "eval/comparator/tasks/task_families.h"
#include "reports/atomic_file.h"
#include "reports/gate/annotations.h"
#include "reports/gate/gate.h"
#include "reports/gate/gate_json.h"
#include "reports/gate/gate_text.h"
#include "reports/gate/junit.h"
#include "reports/results_io.h"
#include "reports/table.h"

namespace replayeval {
namespace {

namespace gate = reports::gate;

struct Options {
  std::vector<std::string> results;
  std::string policy, baseline, junit, summary;
  bool github = false, json = false, explain = false;
};

// One run, or several parts of one.
reports::Results load(const std::vector<std::string>& paths) {
  std::vector<reports::NamedResults> parts;
  for (const std::string& path : paths) parts.push_back({path, reports::load_results(path)});
  if (parts.size() == 1) return parts.front().results;
  reports::Results merged = reports::merge_results(parts);
  merged.task_families = task_families(merged);
  return merged;
}

gate::Outcome judge(const Options& options) {
  const gate::Policy policy = load_gate_policy(options.policy);
  const reports::Results run = load(options.results);
  std::optional<reports::Results> release;
  if (!options.baseline.empty()) release = reports::load_results(options.baseline);
  std::optional<gate::NamedRun> named_release;
  if (release) named_release.emplace(gate::NamedRun{options.baseline, *release});
  return gate::judge(policy, {options.results.front(), run}, named_release);
}

// GitHub gives every step a file of its own for this; without --summary it is taken where annotations are asked for.
std::string summary_file(const Options& options) {
  if (!options.summary.empty() || !options.github) return options.summary;
  const char* file = std::getenv("GITHUB_STEP_SUMMARY");
  return file == nullptr ? "" : file;
}

// Others may have written to it before.
void append(const std::string& text, const std::filesystem::path& file) {
  const auto fail = [&] {
    throw reports::ResultsError(file.string() + ": cannot be written: " + std::strerror(errno));
  };
  std::FILE* stream = std::fopen(file.c_str(), "ab");
  if (stream == nullptr) fail();
  const bool written = std::fwrite(text.data(), 1, text.size(), stream) == text.size();
  if (std::fclose(stream) != 0 || !written) fail();
}

// The text is for people: where scripts read standard output it goes to standard error.
void print(const gate::Outcome& outcome, const Options& options) {
  std::FILE* stream = options.json ? stderr : stdout;
  fmt::print(stream, "{}",
             options.explain ? gate::explanation(outcome)
                             : gate::gate_text(outcome, reports::table_options_for(stream).colour));
  for (const std::string& warning : outcome.warnings) fmt::print(stderr, "replayeval: warning: {}\n", warning);
  if (options.json) fmt::print("{}\n", gate::to_json(outcome).dump(2));
  // Commands are read from either stream.
  if (options.github) fmt::print(stream, "{}", gate::annotations(outcome));
}

// A job that reads JUnit or annotations sees a gate that could not run as well.
void say_it_failed(const Options& options, const std::string& message) {
  if (options.github) fmt::print(options.json ? stderr : stdout, "{}", gate::annotation_of_fault(message));
  if (!options.junit.empty()) reports::write_file_atomically(options.junit, gate::junit_xml_of_fault(message));
  if (const std::string file = summary_file(options); !file.empty())
    append("### Gate: cannot be judged\n\n" + message + "\n", file);
}

void gate_command(const Options& options) {
  gate::Outcome outcome;
  try {
    outcome = judge(options);
  } catch (const std::exception& error) {
    try {
      say_it_failed(options, error.what());
    } catch (const std::exception& second) {
      fmt::print(stderr, "replayeval: {}\n", second.what());
    }
    throw;
  }
  print(outcome, options);
  if (!options.junit.empty()) reports::write_file_atomically(options.junit, gate::junit_xml(outcome));
  if (const std::string file = summary_file(options); !file.empty()) append(gate::gate_markdown(outcome), file);
  if (const int code = outcome.exit_code(); code != 0) throw GateClosed{code};
}

}  // namespace

void add_gate_command(CLI::App& app) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand(
      "gate",
      "Hold results against a policy: exit code 0 pass, 1 regression, 2 inconclusive where the policy says "
      "fail, 3 not judged");
  command->add_option("results", options->results, "A result folder or results.json; several are parts of one run")
      ->required();
  command->add_option("--policy", options->policy, "The rules (configs/gates/README.md)")->required();
  command->add_option("--baseline", options->baseline, "The last release's results, for rules `against: release`");
  command->add_option("--junit", options->junit, "Write JUnit XML to this file");
  command->add_option("--summary", options->summary,
                      "Append a Markdown summary to this file (with --github: $GITHUB_STEP_SUMMARY)");
  command->add_flag("--github", options->github, "Print annotations for GitHub Actions");
  command->add_flag("--explain", options->explain, "Print each rule, its interval and the samples needed");
  command->add_flag("--json", options->json, "Print the judgements as JSON on stdout, and the text on stderr");
  command->callback([options] { gate_command(*options); });
}

}  // namespace replayeval
