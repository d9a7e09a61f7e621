// replayeval: what ReplaySSM decoding costs in quality and buys in speed.
#include <c10/util/Exception.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdio>
#include <exception>
#include <memory>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "build_info.h"
#include "eval/cli/bench.h"
#include "eval/cli/gate.h"
#include "eval/cli/generate.h"
#include "eval/cli/inspect.h"
#include "eval/cli/logits.h"
#include "eval/cli/report.h"
#include "eval/cli/run.h"
#include "eval/cli/tokenize.h"
#include "eval/comparator/interrupt.h"
#include "eval/comparator/on_stderr.h"

namespace {

constexpr int exit_broken = 1;         // as a gate's regression
constexpr int exit_usage_or_io = 3;    // design: "The commands"
constexpr int exit_interrupted = 130;  // 128 + SIGINT, as shells have it

// What is wrong: the parser's words, except that it says of a mistaken command no more than that one is required.
std::string fault_of(const CLI::App& app, const CLI::Error& error) {
  const std::vector<std::string> words = app.remaining();
  if (app.get_require_subcommand_min() == 0 || words.empty()) return error.what();
  std::vector<std::string> commands;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; }))
    commands.push_back(command->get_name());
  return fmt::format("found '{}', expected a command: {}", words.front(), fmt::join(commands, ", "));
}

// Help that ends with its last line.
class TrimmedHelp : public CLI::Formatter {
 public:
  std::string make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const override {
    std::string text = CLI::Formatter::make_help(app, std::move(name), mode);
    if (mode == CLI::AppFormatMode::Sub) return text;
    text.erase(text.find_last_not_of('\n') + 1);
    return text + "\n";
  }
};

// One line, with the command whose --help says more.
std::string usage_message(const CLI::App* app, const CLI::Error& error) {
  const auto asked = app->get_subcommands();
  const CLI::App* meant = asked.empty() ? app : asked.front();
  const std::string command = asked.empty() ? app->get_name() : app->get_name() + " " + meant->get_name();
  return fmt::format("replayeval: {} (see {} --help)\n", fault_of(*meant, error), command);
}

// The last of what was printed may still be in a buffer. Throws std::system_error if it cannot go out.
void flush_output() {
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0)
    throw std::system_error(errno, std::generic_category(), "standard output");
}

// One line. LibTorch's errors, such as those of an allocation, end in the stack of calls.
std::string message_of(const std::exception& error) {
  if (const auto* torch = dynamic_cast<const c10::Error*>(&error)) {
    const std::string text = torch->what_without_backtrace();
    return text.substr(0, text.find('\n'));
  }
  const auto* system = dynamic_cast<const std::system_error*>(&error);
  if (system != nullptr && std::ferror(stdout) != 0)
    return "standard output: cannot be written: " + system->code().message();
  return error.what();
}

// Parses and runs; the exit code.
int run_program(CLI::App& app, int argc, char** argv) {
  try {
    int code = 0;
    try {
      app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {  // --help, too
      code = app.exit(error) == 0 ? 0 : exit_usage_or_io;
    }
    flush_output();
    return code;
  } catch (const replayeval::Interrupted& stop) {
    replayeval::say("replayeval: {}\n", stop.what());
    return exit_interrupted;
  } catch (const replayeval::BrokenChecks& broken) {
    replayeval::say("replayeval: {}\n", broken.what());
    return exit_broken;
  } catch (const replayeval::GateClosed& closed) {
    return closed.exit_code;
  } catch (const std::exception& error) {
    replayeval::say("replayeval: {}\n", message_of(error));
    return exit_usage_or_io;
  }
}

}  // namespace

int main(int argc, char** argv) {
  // Line by line into pipes and files, too: where they are stderr's, its lines come between whole ones, in order.
  std::setvbuf(stdout, nullptr, _IOLBF, BUFSIZ);
  CLI::App app("ReplayEval: paired evaluation of exact and replay decoding of state-space hybrids", "replayeval");
  app.set_version_flag("--version", fmt::format("replayeval {} ({}, {})", replayeval::build_version,
                                                replayeval::build_git_revision, replayeval::build_kind));
  app.formatter(std::make_shared<TrimmedHelp>());
  app.require_subcommand(1);
  app.failure_message(usage_message);
  replayeval::add_run_command(app);
  replayeval::add_report_command(app);
  replayeval::add_gate_command(app);
  replayeval::add_bench_command(app);
  replayeval::add_inspect_command(app);
  replayeval::add_logits_command(app);
  replayeval::add_generate_command(app);
  replayeval::add_tokenize_command(app);
  return run_program(app, argc, argv);
}
