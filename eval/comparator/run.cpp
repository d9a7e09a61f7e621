#include "eval/comparator/run.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <utility>

#include "eval/checkpoint/checkpoint.h"
#include "eval/checkpoint/float8_scales.h"
#include "eval/comparator/baseline/baseline_keeper.h"
#include "eval/comparator/baseline/stored_baseline.h"
#include "eval/comparator/churn/churn_workload.h"
#include "eval/comparator/environment.h"
#include "eval/comparator/generation/generation_workload.h"
#include "eval/comparator/interrupt.h"
#include "eval/comparator/on_stderr.h"
#include "eval/comparator/perplexity.h"
#include "eval/comparator/prepared_run.h"
#include "eval/comparator/recall/recall_workload.h"
#include "eval/comparator/result_folder.h"
#include "eval/comparator/run_config.h"
#include "eval/comparator/tasks/task_families.h"
#include "eval/comparator/tasks/task_workload.h"
#include "eval/model/architecture.h"
#include "eval/model/model.h"
#include "reports/html/report.h"
#include "reports/markdown.h"
#include "reports/results_io.h"

namespace replayeval {
namespace {

using nlohmann::json;

// All that decides the numbers. Two runs may share a result folder if these are equal.
json identity_of(const RunConfig& config, const Checkpoint& checkpoint,
                 const std::shared_ptr<const datasets::Tokenizer>& tokenizer,
                 const std::optional<StoredBaseline>& against) {
  json data = json::object();
  const Architecture architecture = describe_architecture(checkpoint);
  for (const WorkloadConfig& workload : config.workloads) {
    if (workload.kind == "recall") {
      std::vector<datasets::RecallTask> tasks = open_recall(workload, tokenizer);
      check_recall(workload, tasks);
      for (const datasets::RecallTask& task : tasks) data[workload.name].push_back(task.describe());
      continue;
    }
    if (workload.kind == "churn") continue;  // its tokens follow from the config
    if (workload.kind == "task") {
      data[workload.name] = open_task(workload).describe();
      continue;
    }
    if (workload.kind == "generation") {
      data[workload.name] =
          open_prompts(config, workload, tokenizer, architecture.vocab_size, architecture.max_positions).description;
      continue;
    }
    const json description = open_windows(workload, architecture.vocab_size, tokenizer).describe();
    for (const json& source : description.at("sources")) {
      data[workload.name].push_back({{"name", source.at("name")}, {"sha256", source.at("sha256")}});
    }
  }
  json as_run = to_json(config);
  as_run.erase("name");  // a config may be renamed
  json identity = {{"schema_version", reports::schema_version},
                   {"config", std::move(as_run)},
                   {"checkpoint_sha256", checkpoint.sha256()},
                   {"tokenizer_sha256", tokenizer ? tokenizer->sha256() : ""},
                   {"data", std::move(data)}};
  if (against) identity["against_sha256"] = against->sha256();
  return identity;
}

std::vector<const WorkloadConfig*> asked_for(const RunConfig& config, const std::optional<std::string>& only) {
  std::vector<const WorkloadConfig*> workloads;
  std::string names;
  for (const WorkloadConfig& workload : config.workloads) {
    if (!only || workload.name == *only) workloads.push_back(&workload);
    names += (names.empty() ? "" : ", ") + workload.name;
  }
  if (workloads.empty()) {
    throw std::invalid_argument(
        fmt::format("{}: no workload is named '{}'; there are: {}", config.file.string(), only.value_or(""), names));
  }
  return workloads;
}

bool holds(const reports::Results& results, const std::string& workload) {
  return std::any_of(results.workloads.begin(), results.workloads.end(),
                     [&](const reports::Workload& done) { return done.name == workload; });
}

json describe_checkpoint(const RunConfig& config, const Checkpoint& checkpoint, const Model& model,
                         const datasets::Tokenizer* tokenizer) {
  json description = {{"path", config.checkpoint},
                      {"sha256", checkpoint.sha256()},
                      {"model_type", model.model_type()},
                      {"parameters", model.parameter_count()},
                      {"vocab_size", model.vocab_size()},
                      {"stored_dtype", dtype_name(stored_dtype(checkpoint))},
                      {"weights", config.random_weights ? "random" : "stored"}};
  if (config.random_weights) description["seed"] = config.seed;
  if (const std::size_t ignored = activation_scales(checkpoint).size(); ignored != 0)
    description["ignored_tensors"] = {{"activation_scales", ignored}};
  if (tokenizer != nullptr) description["tokenizer"] = {{"kind", tokenizer->kind()}, {"sha256", tokenizer->sha256()}};
  return description;
}

json describe_numerics(const ModelOptions& options, const Architecture& architecture) {
  json numerics = {{"compute_dtype", dtype_name(options.compute_dtype)},
                   {"dt_floor", dt_floor_name(options.dt_floor)},
                   {"norm_span", norm_span_name(options.norm_span)},
                   {"beta", precision_name(options.delta_rule.beta)},
                   {"log_decay", precision_name(options.delta_rule.log_decay)},
                   {"qk_norm", precision_name(options.delta_rule.qk_norm)},
                   {"recurrence_arithmetic", "float32"},
                   {"rounding", "nearest even"},
                   {"mixer_output_dtype", dtype_name(options.compute_dtype)},
                   {"convolution", "float32 arithmetic, one rounding to compute_dtype after SiLU"},
                   {"gated_norm", "float32 arithmetic, one rounding to compute_dtype"},
                   {"logits", "float32"},
                   {"tf32", false}};
  // Channels under one mean; 0 where mixers only gate.
  if (architecture.count(LayerKind::mamba2) != 0)
    numerics["gated_norm_group_size"] = architecture.norm_group_size.of(options.norm_span);
  return numerics;
}

// Puts a fresh workload in the place that the config gives it.
void insert_in_order(const RunConfig& config, reports::Results& results, reports::Workload&& workload) {
  results.workloads.push_back(std::move(workload));
  const auto place = [&](const reports::Workload& done) {
    return std::find_if(config.workloads.begin(), config.workloads.end(),
                        [&](const WorkloadConfig& entry) { return entry.name == done.name; });
  };
  std::sort(results.workloads.begin(), results.workloads.end(),
            [&](const auto& a, const auto& b) { return place(a) < place(b); });
}

void describe_run(const RunContext& context, const Checkpoint& checkpoint, reports::Results& results) {
  const ModelOptions& options = context.model.options();
  results.tool = tool_description();
  results.environment = environment_description(options.device);
  results.config = to_json(context.config);
  results.checkpoint = describe_checkpoint(context.config, checkpoint, context.model, context.tokenizer.get());
  results.numerics = describe_numerics(options, describe_architecture(checkpoint));
  results.arms.clear();
  for (const Arm& arm : context.arms) results.arms.push_back(to_json(arm));
  results.baseline = context.arms[context.baseline].name;
}

reports::Workload run_workload(const RunContext& context, const WorkloadConfig& workload, const ResultFolder& folder) {
  if (workload.kind == "recall") return run_recall(context, workload, folder.shard_folder(workload.name));
  if (workload.kind == "churn") return run_churn(context, workload);
  if (workload.kind == "task")
    return run_task(context, workload, {folder.shard_folder(workload.name), folder.samples_folder()});
  if (workload.kind == "generation")
    return run_generation(context, workload,
                          {folder.shard_folder(workload.name), folder.samples_folder(), folder.tokens_folder()});
  return run_perplexity(context, workload, {folder.shard_folder(workload.name), folder.tokens_folder()});
}

// What a run that was stopped leaves: finished workloads and, of the one it was in, finished parts. Churn writes none.
std::string what_is_kept(std::size_t finished, const WorkloadConfig& workload, std::size_t parts) {
  const auto counted = [](std::size_t count, const char* what) {
    return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
  };
  const std::string whole = finished == 0 ? "" : counted(finished, "finished workload") + " and ";
  if (workload.kind == "churn")
    return fmt::format("{}nothing of '{}': a churn workload is computed in one go", whole, workload.name);
  if (parts == 0) return fmt::format("{}nothing of '{}', no part of which was finished", whole, workload.name);
  return fmt::format("{}{} of '{}'", whole, counted(parts, "finished part"), workload.name);
}

// What run_workload() gives; an Interrupted says where the next run begins. `finished`: workloads that are.
reports::Workload run_or_say_what_is_kept(const RunContext& context, const WorkloadConfig& workload,
                                          const ResultFolder& folder, std::size_t finished, bool overwrite) {
  try {
    return run_workload(context, workload, folder);
  } catch (const Interrupted&) {
    const auto parts = static_cast<std::size_t>(folder.part_count(workload.name));
    const bool anything = finished > 0 || parts > 0;
    throw Interrupted(fmt::format("stopped; kept: {}; the same command{} {}", what_is_kept(finished, workload, parts),
                                  overwrite && anything ? " without --overwrite" : "",
                                  anything ? "goes on from there" : "starts anew"));
  }
}

// Results that are there without the baseline that is asked for: the hidden states are gone.
void expect_baseline(const ResultFolder& folder, const BaselineKeeper* keeper, const WorkloadConfig& workload) {
  if (keeper == nullptr || workload.kind != "perplexity" || keeper->holds(workload.name)) return;
  throw ResultFolderError(
      fmt::format("{}: holds the results of workload '{}', but not the baseline asked for; to compute it again, use "
                  "--overwrite or another --output",
                  folder.path().string(), workload.name));
}

// Every workload that is asked for, before the first is computed.
void expect_stored(const StoredBaseline& against, const std::vector<const WorkloadConfig*>& workloads,
                   const Checkpoint& checkpoint, const std::shared_ptr<const datasets::Tokenizer>& tokenizer) {
  const auto vocab_size = describe_architecture(checkpoint).vocab_size;
  for (const WorkloadConfig* workload : workloads)
    if (workload->kind == "perplexity")
      against.expect(workload->name, open_windows(*workload, vocab_size, tokenizer).describe());
}

// A run that was begun with --save-baseline and goes on without it keeps none of what it computes now.
void say_no_baseline_is_kept(const ResultFolder& folder, const WorkloadConfig& workload) {
  namespace fs = std::filesystem;
  if (workload.kind != "perplexity") return;
  bool begun = fs::exists(folder.baseline_folder() / baseline_names::file);
  const fs::path shards = folder.shard_folder(workload.name);
  if (fs::is_directory(shards))
    for (const fs::directory_entry& entry : fs::directory_iterator(shards))
      begun = begun || entry.path().extension() == ".hidden";
  if (begun)
    say("replayeval: warning: {}: was begun with --save-baseline; without it no baseline is kept of workload '{}'\n",
        folder.path().string(), workload.name);
}

void write_reports(const reports::Results& results, const std::filesystem::path& folder) {
  reports::write_markdown_report(results, folder);
  reports::write_html_report({reports::run_of(results, folder)}, {}, folder);
}

// A run that was stopped between results.json and its reports left none, or those of fewer workloads.
bool reports_are_stale(const ResultFolder& folder) {
  namespace fs = std::filesystem;
  for (const char* name : {"report.md", "report.html"})
    if (const fs::path report = folder.path() / name;
        !fs::exists(report) || fs::last_write_time(report) < fs::last_write_time(folder.results_file()))
      return true;
  return false;
}

}  // namespace

RunOutcome run(const RunRequest& request) {
  const PreparedRun prepared = prepare_run(request.config, request.device);
  const auto& [config, checkpoint, options, arms] = prepared;
  const auto workloads = asked_for(config, request.only);
  std::shared_ptr<const datasets::Tokenizer> tokenizer;  // none where only random ids are decoded
  if (config.needs_tokenizer()) tokenizer = datasets::load_tokenizer(checkpoint.folder());

  const std::filesystem::path path = request.output.value_or(std::filesystem::path("results") / config.name);
  std::optional<StoredBaseline> against;
  if (request.against) {
    against = StoredBaseline::open(*request.against);
    expect_stored(*against, workloads, checkpoint, tokenizer);
  }
  std::unique_ptr<Model> model;  // loaded only if there is work left, and before anything is overwritten
  const auto load = [&, &checkpoint = checkpoint, &options = options] {  // clang 14 captures no bindings by themselves
    model = load_model(checkpoint, options);
    if (against) against->check(*model);
  };
  if (request.overwrite) load();
  ResultFolder folder = ResultFolder::open(path, identity_of(config, checkpoint, tokenizer, against),
                                           tool_description().at("git"), request.overwrite);
  RunOutcome outcome{{}, path, true};
  if (std::filesystem::exists(folder.results_file())) outcome.results = reports::load_results(folder.results_file());

  std::optional<BaselineKeeper> keeper;
  if (request.save_baseline)
    keeper.emplace(folder.baseline_folder(), *request.save_baseline, arms,
                   describe_architecture(checkpoint).hidden_size, options.compute_dtype);

  for (const WorkloadConfig* workload : workloads) {
    if (holds(outcome.results, workload->name)) {
      expect_baseline(folder, keeper ? &*keeper : nullptr, *workload);
      continue;
    }
    outcome.was_complete = false;
    if (!keeper) say_no_baseline_is_kept(folder, *workload);
    if (!model) load();
    RunContext context{config, *model, tokenizer, arms, config.baseline_index(), request.quiet};
    if (keeper) context.keeper = &*keeper;
    if (against) context.against = &*against;
    reports::Workload result =
        run_or_say_what_is_kept(context, *workload, folder, outcome.results.workloads.size(), request.overwrite);
    describe_run(context, checkpoint, outcome.results);
    if (keeper && workload->kind == "perplexity") keeper->describe(outcome.results, result, *model);
    insert_in_order(config, outcome.results, std::move(result));
    outcome.results.task_families = task_families(outcome.results);
    reports::save_results(outcome.results, folder.results_file());
    write_reports(outcome.results, path);
  }
  if (outcome.was_complete && reports_are_stale(folder)) write_reports(outcome.results, path);
  if (outcome.results.workloads.size() == config.workloads.size()) folder.remove_progress();
  return outcome;
}

}  // namespace replayeval
