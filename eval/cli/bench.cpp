#include "eval/cli/bench.h"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "eval/cli/bench_model.h"
#include "eval/comparator/environment.h"
#include "kernels/bench/kernel_bench.h"

namespace replayeval {

void add_bench_command(CLI::App& app) {
  CLI::App* bench_command = app.add_subcommand("bench", "Decode speed");
  bench_command->require_subcommand(1);
  bench::add_kernel_bench(
      *bench_command->add_subcommand(
          "kernels",
          "Time of one decode step of a layer, exact against replay, over whole ring cycles; checks its outputs"),
      [](bool on_gpu) {
        return nlohmann::json{{"tool", tool_description()},
                              {"environment", environment_description(on_gpu ? DeviceKind::cuda : DeviceKind::cpu)}};
      });
  add_model_bench(*bench_command->add_subcommand(
      "model",
      "Whole-model decode speed of a run config's arms, one token a sequence and call, over whole ring cycles"));
}

}  // namespace replayeval
