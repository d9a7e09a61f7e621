#include "eval/cli/run.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "build_info.h"
#include "eval/cli/not_empty.h"
#include "eval/comparator/interrupt.h"
#include "eval/comparator/on_stderr.h"
#include "eval/comparator/run.h"
#include "reports/churn_table.h"
#include "reports/results_io.h"
#include "reports/table.h"

namespace replayeval {
namespace {

struct Options {
  std::string config, device, output, only, save_baseline, baseline_dtype, against;
  std::vector<std::string> baseline_arms;
  bool overwrite = false, json = false, quiet = false;
};

RunRequest request_of(const Options& options) {
  if (options.save_baseline == "log_probs" && !options.baseline_dtype.empty())
    throw CLI::ValidationError("--baseline-dtype", "is of hidden states; expected --save-baseline hidden with it");
  RunRequest request;
  request.config = options.config;
  if (!options.device.empty()) request.device = options.device == "cuda" ? DeviceKind::cuda : DeviceKind::cpu;
  if (!options.output.empty()) request.output = options.output;
  if (!options.only.empty()) request.only = options.only;
  if (!options.save_baseline.empty())
    request.save_baseline = BaselineRequest{*parse_baseline_form(options.save_baseline),
                                            parse_dtype(options.baseline_dtype), options.baseline_arms};
  if (!options.against.empty()) request.against = options.against;
  request.overwrite = options.overwrite;
  request.quiet = options.quiet;
  return request;
}

void say_if_of_another_revision(const RunOutcome& outcome) {
  const std::string computed_by = outcome.results.tool.value("git", "an unknown revision");
  if (!outcome.was_complete || computed_by == build_git_revision) return;
  say("replayeval: warning: {} was computed by {}; this program is {}; to compute again, use --overwrite or "
      "remove the folder\n",
      outcome.folder.string(), computed_by, build_git_revision);
}

// Samples are part of a task's results, and only computing it again brings them back.
void say_what_is_gone(const RunOutcome& outcome) {
  for (const reports::Workload& workload : outcome.results.workloads) {
    if (workload.kind != "task") continue;
    for (const auto& [arm, measured] : workload.arms)
      if (const auto file = outcome.folder / "samples" / fmt::format("{}.{}.jsonl", workload.name, arm);
          !std::filesystem::exists(file))
        say("replayeval: warning: {}: is gone; to compute it again, use --overwrite or remove the folder\n",
            file.string());
  }
}

void run_command(const Options& options) {
  install_interrupt_handler();
  const RunOutcome outcome = run(request_of(options));
  if (options.json) {
    fmt::print("{}\n", reports::to_json(outcome.results).dump(2));
  } else {
    fmt::print("{}", reports::summary_table(outcome.results, reports::table_options_for(stdout)));
  }
  if (!options.quiet) {
    say("\n{}{}\n  report   {}\n  results  {}\n", outcome.was_complete ? "Already complete: " : "Written to ",
        outcome.folder.string(), (outcome.folder / "report.html").string(), (outcome.folder / "results.json").string());
  }
  say_if_of_another_revision(outcome);
  say_what_is_gone(outcome);
  for (const reports::Workload& workload : outcome.results.workloads)
    if (reports::broken_checks(workload) > 0)
      throw BrokenChecks(fmt::format("workload '{}': {}", workload.name, reports::churn_verdict(workload)));
}

}  // namespace

void add_run_command(CLI::App& app) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("run", "Compare all arms of a config on all of its workloads");
  command->add_option("config", options->config, "The run's YAML file (configs/README.md describes it)")->required();
  command->add_option("--device", options->device, "cpu or cuda, instead of the config's")
      ->check(CLI::IsMember({"cpu", "cuda"}));
  command->add_option("--output", options->output, "Result folder (default: results/NAME)")
      ->check(not_empty("a folder"));
  command->add_option("--only", options->only, "Run this workload alone; the others can follow later")
      ->check(not_empty("a workload's name"));
  CLI::Option* save =
      command
          ->add_option("--save-baseline", options->save_baseline,
                       "Keep in OUTPUT/baseline what a later run needs to be compared with this one: `hidden` states "
                       "(full-vocabulary KL; the size is printed first) or `log_probs` (perplexity alone)")
          ->check(CLI::IsMember({"hidden", "log_probs"}));
  command
      ->add_option("--baseline-dtype", options->baseline_dtype,
                   "Type of the kept hidden states (default: the compute dtype, which loses nothing)")
      ->check(CLI::IsMember({"float32", "bfloat16", "float16"}))
      ->needs(save);
  command->add_option("--baseline-arms", options->baseline_arms, "Keep these arms alone (default: all)")
      ->delimiter(',')
      ->check(not_empty("an arm's name"))
      ->needs(save);
  command
      ->add_option("--against", options->against,
                   "Compare perplexity workloads with the baseline in this folder, arm by arm")
      ->check(not_empty("a folder that `run --save-baseline` wrote"));
  command->add_flag("--overwrite", options->overwrite, "Discard what another run left in the result folder");
  command->add_flag("--json", options->json, "Print results.json on stdout instead of the table");
  command->add_flag("--quiet", options->quiet, "No progress on stderr");
  command->footer(
      "An interrupted run keeps the parts of its work that are finished and says which; the same command, without\n"
      "--overwrite, goes on from there. A churn workload is computed in one go and keeps no parts.\n"
      "On the CPU beside other busy programs, GOMP_SPINCOUNT=1000 in the environment makes runs several times faster.");
  command->callback([options] { run_command(*options); });
}

}  // namespace replayeval
