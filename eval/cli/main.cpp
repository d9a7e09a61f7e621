// replayeval: what ReplaySSM decoding costs in quality and buys in speed.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <string>

#include "build_info.h"
#include "eval/cli/bench.h"
#include "eval/cli/inspect.h"
#include "eval/cli/logits.h"
#include "eval/cli/report.h"
#include "eval/cli/run.h"
#include "eval/cli/tokenize.h"
#include "eval/comparator/interrupt.h"

namespace {

constexpr int exit_usage_or_io = 3;    // design: "The commands"
constexpr int exit_interrupted = 130;  // 128 + SIGINT, as shells have it

// One line, with the command whose --help says more.
std::string usage_message(const CLI::App* app, const CLI::Error& error) {
  const auto asked = app->get_subcommands();
  const std::string command = asked.empty() ? app->get_name() : app->get_name() + " " + asked.front()->get_name();
  return fmt::format("replayeval: {} (see {} --help)\n", error.what(), command);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("ReplayEval: paired evaluation of exact and replay decoding of state-space hybrids", "replayeval");
  app.set_version_flag("--version", fmt::format("replayeval {} ({}, {})", replayeval::build_version,
                                                replayeval::build_git_revision, replayeval::build_kind));
  app.require_subcommand(1);
  app.failure_message(usage_message);
  replayeval::add_run_command(app);
  replayeval::add_report_command(app);
  replayeval::add_bench_command(app);
  replayeval::add_inspect_command(app);
  replayeval::add_logits_command(app);
  replayeval::add_tokenize_command(app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : exit_usage_or_io;
  } catch (const replayeval::Interrupted& stop) {
    fmt::print(stderr, "replayeval: {}\n", stop.what());
    return exit_interrupted;
  } catch (const std::exception& error) {
    fmt::print(stderr, "replayeval: {}\n", error.what());
    return exit_usage_or_io;
  }
  return 0;
}
