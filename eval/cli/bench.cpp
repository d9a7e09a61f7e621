#include "eval/cli/bench.h"

#include <CLI/CLI.hpp>
#include <memory>

#include "eval/cli/bench_model.h"
#include "kernels/bench/kernel_bench.h"

namespace replayeval {

void add_bench_command(CLI::App& app) {
  CLI::App* bench_command = app.add_subcommand("bench", "Decode speed");
  bench_command->require_subcommand(1);
  bench::add_kernel_bench(*bench_command->add_subcommand(
      "kernels",
      "Time of one decode step of a layer, exact against replay, over whole ring cycles; checks its outputs"));
  add_model_bench(*bench_command->add_subcommand(
      "model",
      "Whole-model decode speed of a run config's arms, one token a sequence and call, over whole ring cycles"));
}

}  // namespace replayeval
