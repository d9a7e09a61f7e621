#include "eval/cli/bench_model.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>

#include "eval/cli/bench_model_table.h"
#include "eval/comparator/environment.h"
#include "eval/comparator/on_stderr.h"
#include "eval/comparator/prepared_run.h"
#include "kernels/bench/bench_device.h"

namespace replayeval {
namespace {

struct Arguments {
  std::string config, device;
  std::vector<std::string> arms;
  ModelBenchOptions decoding;
  ScoringBenchOptions scoring;
  bool teacher_forced = false, no_graphs = false, json = false;
};

// The arms that are asked for by name, in the config's order. Throws std::invalid_argument on one that is not there.
std::vector<Arm> chosen_arms(const PreparedRun& run, const std::vector<std::string>& names) {
  if (names.empty()) return run.arms;
  std::vector<Arm> chosen;
  for (const Arm& arm : run.arms)
    if (std::find(names.begin(), names.end(), arm.name) != names.end()) chosen.push_back(arm);
  if (chosen.size() != names.size())
    throw std::invalid_argument(
        fmt::format("bench model: --arms: expected different names of arms in {}", run.config.file.string()));
  return chosen;
}

double read_bandwidth(DeviceKind device) {
  const auto bench = device == DeviceKind::cuda ? bench::make_cuda_device() : bench::make_cpu_device();
  return bench->read_bandwidth();
}

std::size_t baseline_of(const PreparedRun& run, const std::vector<Arm>& arms) {
  for (std::size_t arm = 0; arm < arms.size(); ++arm)
    if (arms[arm].name == run.config.baseline) return arm;
  return 0;
}

void bench_decoding(const Arguments& arguments, const Architecture& architecture, const std::vector<Arm>& arms,
                    const Model& model, ModelBenchReport& report) {
  ModelBenchOptions options = arguments.decoding;
  options.read_bandwidth = report.read_bandwidth = read_bandwidth(model.options().device);
  report.rows = bench_model(model, architecture, arms, options, [](const DecodeSpeed& row) {
    say("  batch {}, {}: {}\n", row.batch, row.arm,
        row.not_run.empty() ? fmt::format("{:.3f} ms a step", row.step_seconds.median * 1e3) : row.not_run);
  });
}

void bench_models(const Arguments& arguments) {
  std::optional<DeviceKind> device;
  if (!arguments.device.empty()) device = arguments.device == "cuda" ? DeviceKind::cuda : DeviceKind::cpu;
  PreparedRun run = prepare_run(arguments.config, device);
  run.options.graphs = !arguments.no_graphs;
  const std::vector<Arm> arms = chosen_arms(run, arguments.arms);
  const Architecture architecture = describe_architecture(run.checkpoint);
  if (arguments.teacher_forced)
    check_scoring_bench(arguments.scoring, architecture.max_positions);
  else
    check_model_bench(arms, arguments.decoding, architecture.max_positions);
  const auto start = std::chrono::steady_clock::now();
  const std::unique_ptr<Model> model = load_model(run.checkpoint, run.options);
  ModelBenchReport report;
  report.load_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  report.baseline = arms[baseline_of(run, arms)].name;
  say("{}: {} parameters in {:.2f} s\n", model->model_type(), model->parameter_count(), report.load_seconds);
  if (arguments.teacher_forced)
    report.scoring =
        bench_scoring({run.config, *model, nullptr, arms, baseline_of(run, arms), true}, arguments.scoring);
  else
    bench_decoding(arguments, architecture, arms, *model, report);
  if (!arguments.json) {
    print_table(report);
    return;
  }
  nlohmann::json all = describe(report);
  all["tool"] = tool_description();
  all["environment"] = environment_description(model->options().device);
  all["model_type"] = model->model_type();
  all["parameters"] = model->parameter_count();
  all["context"] = arguments.decoding.context;
  all["rounds"] = arguments.decoding.rounds;
  for (const Arm& arm : arms) all["arms"].push_back(to_json(arm));
  fmt::print("{}\n", all.dump(2));
}

}  // namespace

void add_model_bench(CLI::App& command) {
  auto arguments = std::make_shared<Arguments>();
  command.add_option("config", arguments->config, "The run's YAML file: its checkpoint and arms are used")->required();
  command.add_option("--device", arguments->device, "cpu or cuda, instead of the config's")
      ->check(CLI::IsMember({"cpu", "cuda"}));
  command.add_option("--arms", arguments->arms, "Only these of the config's arms")->delimiter(',');
  command.add_option("--batch", arguments->decoding.batches, "Sequences decoded at once (default 1,8,32,128,256,512)")
      ->delimiter(',');
  command.add_option("--rounds", arguments->decoding.rounds, "Timed rounds of each arm (default 5)");
  command.add_option("--context", arguments->decoding.context,
                     "Random tokens that every sequence holds before the first step (default 0)");
  command.add_option("--seed", arguments->decoding.seed, "Of those tokens (default 0)");
  command
      .add_option("--stacked", arguments->decoding.stacked,
                  "Two arms that also decode together, in one step, against the slower of them alone")
      ->delimiter(',');
  command.add_flag("--no-graphs", arguments->no_graphs, "On a GPU, launch steps kernel by kernel, not as CUDA graphs");
  CLI::Option* scoring = command.add_flag(
      "--teacher-forced", arguments->teacher_forced,
      "Instead of decoding: the speed at which a perplexity workload scores known tokens, and what its time goes to");
  command.add_option("--tokens", arguments->scoring.context, "Of each sequence that is scored (default 2048)")
      ->needs(scoring);
  command
      .add_option("--sequences", arguments->scoring.sequences,
                  "Scored at once (default 0: as many as a workload with `batch: auto` takes)")
      ->needs(scoring);
  command.add_option("--block", arguments->scoring.block, "Tokens of a sequence and call (default 256)")
      ->needs(scoring);
  command.add_flag("--json", arguments->json, "Print everything as JSON");
  command.callback([arguments] { bench_models(*arguments); });
}

}  // namespace replayeval
