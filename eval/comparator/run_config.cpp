#include "eval/comparator/run_config.h"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <map>
#include <set>

#include "datasets/one_line.h"
#include "eval/comparator/churn/churn_config.h"
#include "eval/comparator/generation/generation_config.h"
#include "eval/comparator/state_error_config.h"
#include "eval/comparator/tasks/task_config.h"
#include "eval/comparator/token_files.h"
#include "eval/comparator/yaml_map.h"

namespace replayeval {
namespace {

constexpr std::int64_t most_tokens = std::int64_t{1} << 40;
constexpr std::int64_t longest_context = std::int64_t{1} << 24;

const Words replay_keys = {"ring_form", "ring_storage", "buffer_len", "route", "flush"};
const Words state_dtypes = {"float32", "bfloat16", "float16"};
const Words workload_kinds = {"perplexity", "recall", "task", "generation", "churn"};
const Words ring_dtypes = {"compute_dtype", "float32", "bfloat16"};

Storage parse_storage(const YamlMap& arm, Storage storage) {
  const YAML::Node value = arm.require("state_storage", join_words(state_dtypes));
  if (!value.IsMap()) return {*parse_dtype(arm.word("state_storage", state_dtypes)), storage.overflow};
  const YamlMap map(value, arm.file(), "state_storage", {"dtype", "overflow"});
  storage.dtype = *parse_dtype(map.word("dtype", state_dtypes));
  if (map.has("overflow")) storage.overflow = *parse_overflow(map.word("overflow", {"infinity", "saturate"}));
  return storage;
}

void parse_ring(const YamlMap& map, ArmConfig& config) {
  Arm& arm = config.arm;
  if (map.has("ring_form")) {
    const std::string form = map.word("ring_form", {"published", "inputs", "deltas"});
    config.ring_form.reset();
    config.ring_form_place = map.place("ring_form");
    if (form != "published") config.ring_form = form == "inputs" ? RingForm::inputs : RingForm::deltas;
  }
  if (map.has("ring_storage"))  // parse_dtype() knows no compute_dtype
    config.ring_storage = parse_dtype(map.word("ring_storage", ring_dtypes));
  if (map.has("buffer_len")) arm.replay.buffer_len = map.integer("buffer_len", 1, 64);
  if (map.has("route"))
    arm.replay.route = map.word("route", {"output_only", "state_and_output"}) == "output_only"
                           ? Route::output_only
                           : Route::state_and_output;
  if (map.has("flush"))
    arm.replay.flush = map.word("flush", {"summed", "sequential"}) == "summed" ? Flush::summed : Flush::sequential;
}

// `executor` is optional in arm_defaults; an arm must have one from somewhere.
ArmConfig parse_arm(const YAML::Node& node, const std::filesystem::path& file, const ArmConfig& defaults,
                    bool have_executor) {
  Words keys = {"name", "executor", "state_storage"};
  keys.insert(keys.end(), replay_keys.begin(), replay_keys.end());
  const YamlMap map(node, file, "an arm", keys);
  ArmConfig config = defaults;
  config.arm.name = map.name("name");
  if (map.has("executor") || !have_executor)
    config.arm.executor = map.word("executor", {"exact", "replay"}) == "exact" ? Executor::exact : Executor::replay;
  if (map.has("state_storage")) config.arm.state_storage = parse_storage(map, config.arm.state_storage);
  if (config.arm.executor == Executor::exact) {
    for (const std::string_view key : replay_keys)
      if (map.has(std::string(key)))
        map.fail(std::string(key), "means nothing with executor: exact; expected only with executor: replay");
    config.arm.replay = {};
    config.ring_form.reset();
    config.ring_storage.reset();
    return config;
  }
  parse_ring(map, config);
  try {
    Arm written = config.arm;
    written.ring_form = config.ring_form.value_or(RingForm::inputs);
    validate(written);
  } catch (const std::invalid_argument& error) {
    map.fail("name", error.what());
  }
  return config;
}

void parse_arms(const YamlMap& root, RunConfig& config) {
  ArmConfig defaults;
  bool have_executor = false;
  if (root.has("arm_defaults")) {
    Words keys = {"executor", "state_storage"};
    keys.insert(keys.end(), replay_keys.begin(), replay_keys.end());
    const YamlMap map(root.require("arm_defaults", "a mapping"), config.file, "arm_defaults", keys);
    have_executor = map.has("executor");
    if (have_executor)
      defaults.arm.executor = map.word("executor", {"exact", "replay"}) == "exact" ? Executor::exact : Executor::replay;
    if (map.has("state_storage")) defaults.arm.state_storage = parse_storage(map, {});
    parse_ring(map, defaults);
  }
  std::set<std::string> names;
  for (const YAML::Node& node : root.list("arms", "a list of arms, each with name and executor")) {
    config.arms.push_back(parse_arm(node, config.file, defaults, have_executor));
    const std::string& name = config.arms.back().arm.name;
    if (!names.insert(name).second)
      throw ConfigError(place_of(config.file, node["name"].Mark()) + ": key 'name': '" + name +
                        "' is another arm's already; expected distinct names");
  }
  const Words allowed(names.begin(), names.end());
  config.baseline = root.has("baseline") ? root.word("baseline", allowed) : config.arms.front().arm.name;
}

// Types and ranges are checked here, where line and column are known; meaning and defaults are the datasets' own.
SourceConfig parse_random_ids(const YAML::Node& node, const std::filesystem::path& file) {
  const YamlMap map(node, file, "a source of random ids", {"name", "random_ids"});
  const YamlMap ids(map.require("random_ids", "a mapping"), file, "random_ids", {"documents", "tokens", "seed"});
  SourceConfig source;
  source.place = map.place("random_ids");
  datasets::RandomIdsSpec& spec = source.random_ids.emplace();
  if (map.has("name")) spec.name = map.name("name");
  spec.documents = ids.integer("documents", 1, most_tokens);
  spec.tokens = ids.integer("tokens", 1, longest_context);
  if (ids.has("seed")) spec.seed = static_cast<std::uint64_t>(ids.integer("seed", 0));
  return source;
}

SourceConfig parse_source(const YAML::Node& node, const std::filesystem::path& file) {
  if (node.IsMap() && node["random_ids"].IsDefined()) return parse_random_ids(node, file);
  nlohmann::json json;
  SourceConfig source;
  std::string separator_place;
  source.place = place_of(file, node.Mark());
  if (node.IsScalar()) {
    json = node.Scalar();
  } else {
    const YamlMap map(node, file, "a source",
                      {"name", "path", "separator", "sha256", "max_documents", "max_tokens", "sample_seed"});
    json["path"] = map.text("path", "a file or a glob");
    source.place = map.place("path");
    if (map.has("name")) json["name"] = map.name("name");
    if (map.has("separator")) separator_place = map.place("separator");
    for (const char* key : {"separator", "sha256"})
      if (map.has(key)) json[key] = map.text(key);
    for (const char* key : {"max_documents", "max_tokens"})
      if (map.has(key)) json[key] = map.integer(key, 1, most_tokens);
    if (map.has("sample_seed")) json["sample_seed"] = map.integer("sample_seed", 0);
  }
  try {
    source.text = datasets::parse_text_source(json, "source");
  } catch (const datasets::DataError& error) {
    throw ConfigError(place_of(file, node.Mark()) + ": key 'sources': " + error.what());
  }
  source.text.separator_place = std::move(separator_place);
  return source;
}

const std::string& name_of(const SourceConfig& source) {
  return source.random_ids ? source.random_ids->name : source.text.name;
}

std::vector<SourceConfig> parse_sources(const YamlMap& workload) {
  std::vector<SourceConfig> sources;
  std::set<std::string> names;
  for (const YAML::Node& node : workload.list("sources", "a list of sources, each with a path")) {
    sources.push_back(parse_source(node, workload.file()));
    const std::string& name = name_of(sources.back());
    if (!names.insert(name).second)
      throw ConfigError(place_of(workload.file(), node.Mark()) + ": key 'name': '" + name +
                        "' is another source's already; expected distinct names");
  }
  return sources;
}

// Powers of two from 128 on: growth with length shows on a logarithmic axis.
std::vector<std::int64_t> default_buckets(std::int64_t context) {
  std::vector<std::int64_t> edges = {0};
  for (std::int64_t edge = 128; edge < context; edge *= 2) edges.push_back(edge);
  edges.push_back(context);
  return edges;
}

std::vector<std::int64_t> parse_buckets(const YamlMap& workload, std::int64_t context) {
  if (!workload.has("position_buckets")) return default_buckets(context);
  std::vector<std::int64_t> edges = workload.integers("position_buckets", 0, context);
  if (edges.front() != 0) edges.insert(edges.begin(), 0);
  if (edges.back() != context) edges.push_back(context);
  return edges;
}

// `count` positions from 16 (or the context) to the context, evenly spaced on a logarithmic axis.
void parse_execution(const YamlMap& map, WorkloadConfig& workload) {
  if (map.has("batch") && map.require("batch", "").IsScalar() && map.require("batch", "").Scalar() != "auto")
    workload.batch = map.integer("batch", 1, 65536);
  else if (map.has("batch"))
    map.word("batch", {"auto"});
  if (map.has("block")) workload.block = map.integer("block", 1, longest_context);
  if (map.has("mode"))
    workload.mode =
        map.word("mode", {"teacher_forced", "stepwise"}) == "stepwise" ? Mode::stepwise : Mode::teacher_forced;
  if (map.has("prompt"))
    workload.prompt = map.word("prompt", {"decode", "prefill"}) == "prefill" ? Prompt::prefill : Prompt::decode;
}

std::int64_t longest_document(const WorkloadConfig& workload) {
  std::int64_t longest = 0;
  for (const RecallConfig& task : workload.recall)
    for (const std::int64_t length : task.spec.lengths) longest = std::max(longest, length);
  return longest;
}

// Synthetic recall; what its tasks hold is datasets/recall's business.
WorkloadConfig parse_recall_workload(const YAML::Node& node, const std::filesystem::path& file) {
  const YamlMap map(node, file, "a recall workload",
                    {"name", "kind", "tasks", "batch", "block", "mode", "prompt", "state_error"});
  WorkloadConfig workload;
  workload.name = map.name("name");
  workload.kind = "recall";
  workload.prompt = Prompt::prefill;  // as served
  parse_execution(map, workload);
  std::set<std::string> names;
  for (const YAML::Node& task : map.list("tasks", "a list of recall tasks, each with kind and lengths")) {
    RecallConfig config;
    config.place = place_of(file, task.Mark());
    try {
      config.spec = datasets::parse_recall(json_of(task, file), "a task");
    } catch (const datasets::DataError& error) {
      throw ConfigError(config.place + ": key 'tasks': " + error.what());
    }
    if (!names.insert(config.spec.name).second)
      throw ConfigError(config.place + ": key 'name': '" + config.spec.name +
                        "' is another task's already; expected distinct names");
    workload.recall.push_back(std::move(config));
  }
  if (map.has("state_error"))
    workload.state_error = parse_state_error(map, longest_document(workload), workload.prompt);
  return workload;
}

// Of perplexity: how many tokens of each window a server would have computed as the prompt.
void parse_prefill(const YamlMap& map, WorkloadConfig& workload) {
  if (workload.prompt == Prompt::decode) {
    if (map.has("prefill_tokens")) map.fail("prefill_tokens", "means nothing with prompt: decode; expected prefill");
    return;
  }
  if (workload.context < 2) map.fail("prompt", "prefill leaves nothing of a context of 1; expected decode");
  map.require("prefill_tokens", "how many tokens of each window are its prompt");
  workload.prefill_tokens = map.integer("prefill_tokens", 1, workload.context - 1);
}

// Before anything else, as the kind decides what the keys are.
std::string kind_of(const YAML::Node& node, const std::filesystem::path& file) {
  if (!node.IsMap()) return "perplexity";  // whose reader says what a workload is
  const YAML::Node kind = node["kind"];
  const std::string place = place_of(file, kind.IsDefined() ? kind.Mark() : node.Mark()) + ": key 'kind': ";
  const std::string expected = "expected one of " + join_words(workload_kinds);
  if (!kind.IsDefined()) throw ConfigError(place + "missing from a workload; " + expected);
  if (!kind.IsScalar()) throw ConfigError(place + expected + ", found no single word");
  if (std::find(workload_kinds.begin(), workload_kinds.end(), kind.Scalar()) == workload_kinds.end())
    throw ConfigError(place + expected + ", found '" + datasets::one_line(kind.Scalar()) + "'");
  return kind.Scalar();
}

WorkloadConfig parse_workload(const YAML::Node& node, const std::filesystem::path& file) {
  const std::string kind = kind_of(node, file);
  if (kind == "recall") return parse_recall_workload(node, file);
  if (kind == "task") return parse_task_workload(node, file);
  if (kind == "generation") return parse_generation_workload(node, file);
  if (kind == "churn") return parse_churn_workload(node, file);
  const YamlMap map(node, file, "a workload",
                    {"name", "kind", "sources", "context", "stride", "bos", "max_tokens", "batch", "block", "mode",
                     "prompt", "prefill_tokens", "position_buckets", "state_error"});
  WorkloadConfig workload;
  workload.name = map.name("name");
  workload.kind = kind;
  workload.sources = parse_sources(map);
  if (map.has("context")) workload.context = map.integer("context", 1, longest_context);
  workload.stride = map.has("stride") ? map.integer("stride", 1, workload.context) : workload.context;
  if (map.has("bos")) workload.bos = map.boolean("bos");
  if (map.has("max_tokens")) workload.max_tokens = map.integer("max_tokens", 1, most_tokens);
  parse_execution(map, workload);
  parse_prefill(map, workload);
  workload.position_buckets = parse_buckets(map, workload.context);
  if (map.has("state_error")) workload.state_error = parse_state_error(map, workload.context, workload.prompt);
  return workload;
}

void parse_workloads(const YamlMap& root, RunConfig& config) {
  std::set<std::string> names;
  for (const YAML::Node& node : root.list("workloads", "a list of workloads, each with name and kind")) {
    config.workloads.push_back(parse_workload(node, config.file));
    const std::string& name = config.workloads.back().name;
    if (!names.insert(name).second)
      throw ConfigError(place_of(config.file, node["name"].Mark()) + ": key 'name': '" + name +
                        "' is another workload's already; expected distinct names");
  }
}

// Every arm and workload has files of its own below tokens/; two that share a name would overwrite each other.
void check_token_files(const RunConfig& config) {
  std::map<std::string, std::string> owners;
  const auto claim = [&](const std::string& file, const std::string& owner) {
    const auto [found, fresh] = owners.emplace(file, owner);
    if (!fresh)
      throw ConfigError(config.file.string() + ": " + owner + " and " + found->second + " would both write tokens/" +
                        file + "; expected names that keep them apart");
  };
  for (const WorkloadConfig& workload : config.workloads) {
    claim(token_index_file(workload.name), "the index of workload '" + workload.name + "'");
    for (const ArmConfig& arm : config.arms) {
      const std::string owner = "arm '" + arm.arm.name + "' of workload '" + workload.name + "'";
      claim(log_prob_file(workload.name, arm.arm.name), owner);
      claim(kl_file(workload.name, arm.arm.name), owner);
      claim(generated_file(workload.name, arm.arm.name), owner);
    }
  }
}

// "auto", or a list of cuda:0, cuda:1, ...
void parse_devices(const YamlMap& root, RunConfig& config) {
  if (!root.has("devices")) return;
  if (config.device != DeviceKind::cuda) root.fail("devices", "means nothing without device: cuda; expected both");
  if (root.require("devices", "").IsScalar()) {
    config.all_gpus = root.word("devices", {"auto"}) == "auto";
    return;
  }
  static const Words names = {"cuda:0", "cuda:1", "cuda:2",  "cuda:3",  "cuda:4",  "cuda:5",  "cuda:6",  "cuda:7",
                              "cuda:8", "cuda:9", "cuda:10", "cuda:11", "cuda:12", "cuda:13", "cuda:14", "cuda:15"};
  for (const std::string& name : root.words("devices", names))
    config.gpus.push_back(static_cast<int>(std::find(names.begin(), names.end(), name) - names.begin()));
}

void parse_numerics(const YamlMap& root, RunConfig& config) {
  if (root.has("device"))
    config.device = root.word("device", {"cpu", "cuda"}) == "cuda" ? DeviceKind::cuda : DeviceKind::cpu;
  if (root.has("compute_dtype"))
    config.compute_dtype = parse_dtype(root.word("compute_dtype", {"auto", "float32", "bfloat16"}));
  parse_devices(root, config);
  if (!root.has("numerics")) return;
  const YamlMap map(root.require("numerics", "a mapping"), config.file, "numerics",
                    {"dt_floor", "norm_span", "beta", "log_decay", "qk_norm"});
  if (map.has("dt_floor") && map.word("dt_floor", {"published", "transformers"}) == "transformers")
    config.dt_floor = DtFloor::transformers;
  if (map.has("norm_span") && map.word("norm_span", {"published", "transformers"}) == "transformers")
    config.norm_span = NormSpan::transformers;
  const auto precision = [&map](const char* key, delta_rule::Precision& target) {
    if (map.has(key))
      target = map.word(key, {"float32", "compute"}) == "float32" ? delta_rule::Precision::float32
                                                                  : delta_rule::Precision::compute;
  };
  precision("beta", config.delta_rule.beta);
  precision("log_decay", config.delta_rule.log_decay);
  precision("qk_norm", config.delta_rule.qk_norm);
  for (const char* key : {"dt_floor", "norm_span", "beta", "log_decay", "qk_norm"})
    if (map.has(key)) config.numerics_places[key] = map.place(key);
}

}  // namespace

std::size_t RunConfig::baseline_index() const {
  const auto found = std::find_if(arms.begin(), arms.end(), [&](const auto& arm) { return arm.arm.name == baseline; });
  if (found == arms.end()) throw ConfigError(file.string() + ": no arm is named '" + baseline + "', the baseline");
  return static_cast<std::size_t>(found - arms.begin());
}

bool RunConfig::needs_tokenizer() const {
  return std::any_of(workloads.begin(), workloads.end(), [](const WorkloadConfig& workload) {
    return !workload.recall.empty() || workload.task || workload.generation ||
           std::any_of(workload.sources.begin(), workload.sources.end(),
                       [](const SourceConfig& source) { return !source.random_ids; });
  });
}

RunConfig parse_run_config(const std::string& text, const std::filesystem::path& file) {
  const YamlMap root(parse_yaml(text, file, "a run with name, checkpoint, arms and workloads"), file, "a run",
                     {"name", "seed", "checkpoint", "weights", "device", "devices", "compute_dtype", "numerics",
                      "baseline", "confidence", "bootstrap_samples", "arm_defaults", "arms", "workloads"});
  RunConfig config;
  config.file = file;
  config.name = root.name("name");
  config.checkpoint = root.text("checkpoint", "the folder of a checkpoint");
  config.checkpoint_place = root.place("checkpoint");
  if (root.has("seed")) config.seed = static_cast<std::uint64_t>(root.integer("seed", 0));
  if (root.has("weights")) config.random_weights = root.word("weights", {"stored", "random"}) == "random";
  if (root.has("confidence")) config.confidence = root.number("confidence", 0.0, 1.0);
  if (root.has("bootstrap_samples")) config.bootstrap_samples = root.integer("bootstrap_samples", 100, 1000000);
  parse_numerics(root, config);
  parse_arms(root, config);
  parse_workloads(root, config);
  check_token_files(config);
  return config;
}

Dtype compute_dtype_of(const RunConfig& config, Dtype checkpoint_dtype) {
  if (config.compute_dtype) return *config.compute_dtype;
  return config.device == DeviceKind::cpu ? Dtype::float32 : checkpoint_dtype;
}

std::vector<Arm> arms_of(const RunConfig& config, RingForm published, Dtype compute_dtype) {
  std::vector<Arm> arms;
  for (const ArmConfig& written : config.arms) {
    Arm arm = written.arm;
    if (arm.executor == Executor::replay) {
      arm.ring_form = written.ring_form.value_or(published);
      arm.replay.ring_dtype = written.ring_storage.value_or(compute_dtype);
    }
    validate(arm);
    arms.push_back(std::move(arm));
  }
  return arms;
}

}  // namespace replayeval
