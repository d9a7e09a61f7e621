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
#include <system_error>
#include <utility>
#include <vector>

#include "eval/cli/not_empty.h"
#include "eval/comparator/gate_policy.h"
#include "eval/comparator/on_stderr.h"
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
void put(const std::string& text, const Options& options) {
  if (options.json)
    put_on_stderr(text);
  else
    fmt::print("{}", text);
}

void print(const gate::Outcome& outcome, const Options& options) {
  const bool colour = reports::table_options_for(options.json ? stderr : stdout).colour;
  put(options.explain ? gate::explanation(outcome) : gate::gate_text(outcome, colour), options);
  for (const std::string& warning : outcome.warnings) say("replayeval: warning: {}\n", warning);
  if (options.json) fmt::print("{}\n", gate::to_json(outcome).dump(2));
  // Commands are read from either stream.
  if (options.github) put(gate::annotations(outcome), options);
}

// Nothing is printed before: a text that ends in "pass" beside an output that cannot be written would be believed.
void write_files(const gate::Outcome& outcome, const Options& options) {
  if (!options.junit.empty()) reports::write_file_atomically(options.junit, gate::junit_xml(outcome));
  if (const std::string file = summary_file(options); !file.empty()) append(gate::gate_markdown(outcome), file);
}

// A job that reads JUnit or annotations sees a gate that could not run as well. What cannot be written even now is said
// unless it is the message itself.
void say_it_failed(const Options& options, const std::string& message) {
  const auto attempt = [&](const auto& write) {
    try {
      write();
    } catch (const std::exception& second) {
      if (second.what() != message) say("replayeval: {}\n", second.what());
    }
  };
  if (options.github) attempt([&] { put(gate::annotation_of_fault(message), options); });
  if (!options.junit.empty())
    attempt([&] { reports::write_file_atomically(options.junit, gate::junit_xml_of_fault(message)); });
  if (const std::string file = summary_file(options); !file.empty())
    attempt([&] { append(gate::markdown_of_fault(message), file); });
}

bool same_file(const std::filesystem::path& one, const std::filesystem::path& other) {
  std::error_code none;
  if (std::filesystem::equivalent(one, other, none)) return true;
  return std::filesystem::weakly_canonical(one, none) == std::filesystem::weakly_canonical(other, none);
}

// An output that is an input or the other output would overwrite it.
void check_outputs(const Options& options) {
  std::vector<std::pair<std::string, std::filesystem::path>> taken = {{"the policy", options.policy}};
  std::vector<std::string> read = options.results;
  if (!options.baseline.empty()) read.push_back(options.baseline);
  for (const std::string& result : read) {
    taken.emplace_back("a result", result);
    taken.emplace_back("a result", std::filesystem::path(result) / "results.json");
  }
  const std::string summary = summary_file(options);
  for (const auto& [option, file] :
       {std::pair<std::string, std::string>{"--junit", options.junit}, {"--summary", summary}}) {
    if (file.empty()) continue;
    for (const auto& [what, other] : taken)
      if (same_file(file, other))
        throw reports::ResultsError(
            fmt::format("{} {}: is {} as well; expected a file of its own", option, file, what));
    taken.emplace_back("what " + option + " writes", file);
  }
}

void gate_command(const Options& options) {
  check_outputs(options);
  gate::Outcome outcome;
  try {
    outcome = judge(options);
    write_files(outcome, options);
  } catch (const std::exception& error) {
    say_it_failed(options, error.what());
    throw;
  }
  print(outcome, options);
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
      ->check(not_empty("a result folder or results.json"))
      ->required();
  command
      ->add_option(
          "--policy", options->policy,
          "The rules: a file like those of configs/gates, which README.md there describes (text.yaml: of any "
          "run over text; demo.yaml: in float32; served.yaml: in bfloat16; tasks.yaml: tasks and generated texts; "
          "release.yaml: since the last release)")
      ->check(not_empty("a YAML file"))
      ->required();
  command->add_option("--baseline", options->baseline, "The last release's results, for rules `against: release`")
      ->check(not_empty("a result folder or results.json"));
  command->add_option("--junit", options->junit, "Write JUnit XML to this file")->check(not_empty("a file"));
  command
      ->add_option("--summary", options->summary,
                   "Append a Markdown summary to this file (with --github: $GITHUB_STEP_SUMMARY)")
      ->check(not_empty("a file"));
  command->add_flag("--github", options->github, "Print annotations for GitHub Actions");
  command->add_flag("--explain", options->explain, "Print each rule, its interval and the samples needed");
  command->add_flag("--json", options->json, "Print the judgements as JSON on stdout, and the text on stderr");
  command->callback([options] { gate_command(*options); });
}

}  // namespace replayeval
