// A run's configuration as results.json holds it, and its identity.
#include "datasets/sha256.h"
#include "eval/comparator/churn/churn_config.h"
#include "eval/comparator/generation/generation_config.h"
#include "eval/comparator/run_config.h"
#include "eval/comparator/state_error_config.h"
#include "eval/comparator/tasks/task_config.h"

namespace replayeval {
namespace {

nlohmann::json to_json(const ArmConfig& config) {
  nlohmann::json json = replayeval::to_json(config.arm);
  if (config.arm.executor == Executor::exact) return json;
  json["ring_form"] = config.ring_form ? ring_form_name(*config.ring_form) : "published";
  json["ring_storage"] = config.ring_storage ? dtype_name(*config.ring_storage) : "compute_dtype";
  return json;
}

void put_batch(const WorkloadConfig& config, nlohmann::json& json) {
  if (config.batch)
    json["batch"] = *config.batch;
  else
    json["batch"] = "auto";
}

nlohmann::json recall_to_json(const WorkloadConfig& config) {
  nlohmann::json tasks = nlohmann::json::array();
  for (const RecallConfig& task : config.recall) tasks.push_back(datasets::to_json(task.spec));
  nlohmann::json json = {{"name", config.name},
                         {"kind", config.kind},
                         {"tasks", tasks},
                         {"block", config.block},
                         {"mode", mode_name(config.mode)},
                         {"prompt", prompt_name(config.prompt)}};
  put_batch(config, json);
  if (config.state_error) json["state_error"] = to_json(*config.state_error);
  return json;
}

// Absent limits stay absent: null would be a value.
nlohmann::json to_json(const WorkloadConfig& config) {
  if (config.kind == "recall") return recall_to_json(config);
  if (config.kind == "task") return task_to_json(config);
  if (config.kind == "generation") return generation_to_json(config);
  if (config.kind == "churn") return churn_to_json(config);
  nlohmann::json sources = nlohmann::json::array();
  for (const SourceConfig& source : config.sources)
    sources.push_back(source.random_ids ? datasets::to_json(*source.random_ids) : datasets::to_json(source.text));
  nlohmann::json json = {{"name", config.name},
                         {"kind", config.kind},
                         {"sources", sources},
                         {"context", config.context},
                         {"stride", config.stride},
                         {"bos", config.bos},
                         {"block", config.block},
                         {"mode", mode_name(config.mode)},
                         {"prompt", prompt_name(config.prompt)},
                         {"position_buckets", config.position_buckets}};
  put_batch(config, json);
  if (config.max_tokens) json["max_tokens"] = *config.max_tokens;
  if (config.prompt == Prompt::prefill) json["prefill_tokens"] = config.prefill_tokens;
  if (config.state_error) json["state_error"] = to_json(*config.state_error);
  return json;
}

}  // namespace

std::string_view dt_floor_name(DtFloor floor) { return floor == DtFloor::published ? "published" : "transformers"; }

std::string_view norm_span_name(NormSpan span) { return span == NormSpan::published ? "published" : "transformers"; }

std::string_view precision_name(delta_rule::Precision precision) {
  return precision == delta_rule::Precision::float32 ? "float32" : "compute";
}

std::string_view prompt_name(Prompt prompt) { return prompt == Prompt::decode ? "decode" : "prefill"; }

std::string_view error_depth_name(ErrorDepth depth) {
  if (depth == ErrorDepth::local) return "local";
  return depth == ErrorDepth::propagated ? "propagated" : "gold";
}

std::string_view mode_name(Mode mode) { return mode == Mode::stepwise ? "stepwise" : "teacher_forced"; }

nlohmann::json to_json(const RunConfig& config) {
  nlohmann::json arms = nlohmann::json::array(), workloads = nlohmann::json::array();
  for (const ArmConfig& arm : config.arms) arms.push_back(to_json(arm));
  for (const WorkloadConfig& workload : config.workloads) workloads.push_back(to_json(workload));
  nlohmann::json json = {{"name", config.name},
                         {"seed", config.seed},
                         {"checkpoint", config.checkpoint},
                         {"weights", config.random_weights ? "random" : "stored"},
                         {"device", config.device == DeviceKind::cpu ? "cpu" : "cuda"},
                         {"compute_dtype", config.compute_dtype ? dtype_name(*config.compute_dtype) : "auto"},
                         {"numerics",
                          {{"dt_floor", dt_floor_name(config.dt_floor)},
                           {"norm_span", norm_span_name(config.norm_span)},
                           {"beta", precision_name(config.delta_rule.beta)},
                           {"log_decay", precision_name(config.delta_rule.log_decay)},
                           {"qk_norm", precision_name(config.delta_rule.qk_norm)}}},
                         {"baseline", config.baseline},
                         {"confidence", config.confidence},
                         {"bootstrap_samples", config.bootstrap_samples},
                         {"arms", arms},
                         {"workloads", workloads}};
  if (config.all_gpus) json["devices"] = "auto";
  for (const int gpu : config.gpus) json["devices"].push_back("cuda:" + std::to_string(gpu));
  return json;
}

std::string config_identity(const RunConfig& config) {
  nlohmann::json json = to_json(config);
  json.erase("name");
  return datasets::sha256_hex(json.dump());  // nlohmann keeps keys sorted, so equal configs have equal text
}

}  // namespace replayeval
