#include "eval/cli/bench.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "eval/comparator/environment.h"
#include "eval/comparator/model_bench.h"
#include "eval/comparator/prepared_run.h"
#include "eval/model/architecture.h"
#include "kernels/bench/kernel_bench.h"
#include "reports/numbers.h"

namespace replayeval {
namespace {

struct Arguments {
  std::string config, device;
  ModelBenchOptions options;
  bool json = false;
};

double speedup(const std::vector<DecodeSpeed>& rows, const DecodeSpeed& row, const std::string& baseline) {
  for (const DecodeSpeed& other : rows)
    if (other.batch == row.batch && other.arm == baseline) return other.step_seconds.median / row.step_seconds.median;
  return 0.0;
}

std::string milliseconds(double seconds) { return fmt::format("{:.3f}", seconds * 1e3); }

void print_table(const std::vector<DecodeSpeed>& rows, const std::string& baseline) {
  fmt::print("{:>6}  {:<24}{:>10}  {:<20}{:>12}{:>12}{:>9}{:>13}{:>12}\n", "batch", "arm", "ms a step", "[min, max]",
             "tokens/s", "of baseline", "mixers", "state", "peak");
  for (const DecodeSpeed& row : rows)
    fmt::print("{:>6}  {:<24}{:>10}  {:<20}{:>12.0f}{:>11.3f}×{:>8.1f}%{:>13}{:>12}\n", row.batch, row.arm,
               milliseconds(row.step_seconds.median),
               fmt::format("[{}, {}]", milliseconds(row.step_seconds.low), milliseconds(row.step_seconds.high)),
               row.tokens_per_second, speedup(rows, row, baseline), 100.0 * row.mixer_share,
               reports::bytes_text(static_cast<double>(row.cache_bytes)),
               row.device_bytes == 0 ? "–" : reports::bytes_text(static_cast<double>(row.device_bytes)));
}

nlohmann::json describe(const DecodeSpeed& row) {
  return {{"arm", row.arm},
          {"batch", row.batch},
          {"steps_per_round", row.steps_per_round},
          {"step_seconds",
           {{"median", row.step_seconds.median}, {"low", row.step_seconds.low}, {"high", row.step_seconds.high}}},
          {"tokens_per_second", row.tokens_per_second},
          {"mixer_share", row.mixer_share},
          {"cache_bytes", row.cache_bytes},
          {"device_bytes", row.device_bytes}};
}

void bench_models(const Arguments& arguments) {
  std::optional<DeviceKind> device;
  if (!arguments.device.empty()) device = arguments.device == "cuda" ? DeviceKind::cuda : DeviceKind::cpu;
  const PreparedRun run = prepare_run(arguments.config, device);
  check_model_bench(run.arms, arguments.options, describe_architecture(run.checkpoint).max_positions);
  const auto start = std::chrono::steady_clock::now();
  const std::unique_ptr<Model> model = load_model(run.checkpoint, run.options);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  fmt::print(stderr, "{}: {} parameters in {:.2f} s\n", model->model_type(), model->parameter_count(), seconds);
  const std::vector<DecodeSpeed> rows = bench_model(*model, run.arms, arguments.options, [](const DecodeSpeed& row) {
    fmt::print(stderr, "  batch {}, {}: {} ms a step\n", row.batch, row.arm, milliseconds(row.step_seconds.median));
  });
  if (!arguments.json) {
    print_table(rows, run.config.baseline);
    return;
  }
  nlohmann::json all = {{"environment", environment_description(model->options().device)},
                        {"model_type", model->model_type()},
                        {"parameters", model->parameter_count()},
                        {"load_seconds", seconds},
                        {"context", arguments.options.context},
                        {"rounds", arguments.options.rounds},
                        {"baseline", run.config.baseline}};
  for (const Arm& arm : run.arms) all["arms"].push_back(to_json(arm));
  for (const DecodeSpeed& row : rows) all["rows"].push_back(describe(row));
  fmt::print("{}\n", all.dump(2));
}

}  // namespace

void add_bench_command(CLI::App& app) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* bench_command = app.add_subcommand("bench", "Decode speed");
  bench_command->require_subcommand(1);
  bench::add_kernel_bench(*bench_command->add_subcommand(
      "kernels",
      "Time of one decode step of a layer, exact against replay, over whole ring cycles; checks its outputs"));
  CLI::App* command = bench_command->add_subcommand(
      "model",
      "Whole-model decode speed of a run config's arms, one token a sequence and call, over whole ring cycles");
  command->add_option("config", arguments->config, "The run's YAML file: its checkpoint and arms are used")->required();
  command->add_option("--device", arguments->device, "cpu or cuda, instead of the config's")
      ->check(CLI::IsMember({"cpu", "cuda"}));
  command->add_option("--batch", arguments->options.batches, "Sequences decoded at once (default 1,32,256)")
      ->delimiter(',');
  command->add_option("--rounds", arguments->options.rounds, "Timed rounds of each arm (default 5)");
  command->add_option("--context", arguments->options.context,
                      "Random tokens that every sequence holds before the first step (default 0)");
  command->add_option("--seed", arguments->options.seed, "Of those tokens (default 0)");
  command->add_flag("--json", arguments->json, "Print everything as JSON");
  command->callback([arguments] { bench_models(*arguments); });
}

}  // namespace replayeval
