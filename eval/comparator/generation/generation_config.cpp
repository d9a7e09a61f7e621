#include "eval/comparator/generation/generation_config.h"

#include <limits>

#include "eval/comparator/yaml_map.h"

namespace replayeval {
namespace {

constexpr std::int64_t most = std::int64_t{1} << 40, largest_block = std::int64_t{1} << 24;
constexpr std::int64_t most_slots = 65536, most_repeats = 1 << 20;

// Hands a mapping to a parser of datasets/, whose complaints get the key's line.
template <typename Parse>
auto parsed(const YamlMap& prompts, const char* key, Parse parse) {
  const YAML::Node node = prompts.require(key, "a source of prompts");
  try {
    return parse(json_of(node, prompts.file()), key);
  } catch (const datasets::DataError& error) {
    prompts.fail(key, error.what());
  }
}

PromptConfig parse_jsonl(const YAML::Node& node, const std::filesystem::path& file) {
  const YamlMap map(node, file, "prompts of a JSONL file", {"path", "field", "sha256", "count"});
  PromptConfig prompts;
  prompts.form = PromptForm::jsonl;
  prompts.path = map.text("path", "a JSONL file");
  prompts.field = map.has("field") ? map.text("field", "the name of a member") : "prompt";
  if (map.has("sha256")) prompts.sha256 = map.text("sha256");
  if (map.has("count")) prompts.count = map.integer("count", 1, most);
  return prompts;
}

PromptConfig parse_text(const YAML::Node& node, const std::filesystem::path& file) {
  const YamlMap map(node, file, "prompts of text", {"text", "tokens", "count", "bos"});
  PromptConfig prompts;
  prompts.form = PromptForm::text;
  prompts.text = parsed(map, "text", datasets::parse_text_source);
  prompts.tokens = map.integer("tokens", 1, largest_block);
  prompts.count = map.integer("count", 1, most);
  if (map.has("bos")) prompts.bos = map.boolean("bos");
  return prompts;
}

PromptConfig parse_samples(const YAML::Node& node, const std::filesystem::path& file) {
  const YamlMap map(node, file, "prompts of samples", {"samples", "count"});
  PromptConfig prompts;
  prompts.form = PromptForm::samples;
  prompts.samples = parsed(map, "samples", tasks::parse_task_source);
  if (prompts.samples.path.empty()) map.fail("samples", "expected the path of a file, found nothing");
  if (map.has("count")) prompts.count = map.integer("count", 1, most);
  return prompts;
}

PromptConfig parse_recall(const YAML::Node& node, const std::filesystem::path& file) {
  const YamlMap map(node, file, "prompts of recall", {"recall"});
  PromptConfig prompts;
  prompts.form = PromptForm::recall;
  prompts.recall = parsed(map, "recall", datasets::parse_recall);
  return prompts;
}

PromptConfig parse_prompts(const YamlMap& workload) {
  const std::string expected = "a mapping with path, text, samples or recall";
  const YAML::Node node = workload.require("prompts", expected);
  const auto has = [&](const char* key) { return node.IsMap() && node[key].IsDefined(); };
  PromptConfig prompts;
  if (has("path"))
    prompts = parse_jsonl(node, workload.file());
  else if (has("text"))
    prompts = parse_text(node, workload.file());
  else if (has("samples"))
    prompts = parse_samples(node, workload.file());
  else if (has("recall"))
    prompts = parse_recall(node, workload.file());
  else
    workload.fail("prompts", "expected " + expected);
  prompts.place = workload.place("prompts");
  return prompts;
}

void parse_sampling(const YamlMap& map, GenerationConfig& config) {
  if (map.has("temperature")) config.temperature = map.number_from("temperature", 0.0);
  if (map.has("top_k")) config.top_k = map.integer("top_k", 1, largest_block);
  if (map.has("top_p")) config.top_p = map.share("top_p");
  if (map.has("seed")) config.seed = static_cast<std::uint64_t>(map.integer("seed", 0));
  if (map.has("repeats")) config.repeats = map.integer("repeats", 1, most_repeats);
  if (config.temperature > 0.0) return;
  if (config.repeats > 1)
    map.fail("repeats", "repeats of a greedy choice are the same; expected 1, or a temperature above 0");
  for (const char* key : {"top_k", "top_p"})
    if (map.has(key)) map.fail(key, "means nothing where nothing is drawn; expected a temperature above 0");
}

void parse_ends(const YamlMap& map, GenerationConfig& config) {
  if (map.has("ignore_eos")) config.ignore_eos = map.boolean("ignore_eos");
  if (!map.has("end_tokens")) return;
  if (config.ignore_eos) map.fail("end_tokens", "means nothing with ignore_eos: true; expected one of them");
  constexpr std::int64_t largest_id = std::numeric_limits<std::int32_t>::max();
  for (const std::int64_t id : map.integers("end_tokens", 0, largest_id))
    config.end_tokens.push_back(static_cast<std::int32_t>(id));
}

nlohmann::json to_json(const PromptConfig& prompts) {
  nlohmann::json json = nlohmann::json::object();
  switch (prompts.form) {
    case PromptForm::jsonl:
      json = {{"path", prompts.path}, {"field", prompts.field}};
      if (!prompts.sha256.empty()) json["sha256"] = prompts.sha256;
      break;
    case PromptForm::text:
      json = {{"text", datasets::to_json(prompts.text)}, {"tokens", prompts.tokens}, {"bos", prompts.bos}};
      break;
    case PromptForm::samples:
      json["samples"] = tasks::to_json(prompts.samples);
      break;
    case PromptForm::recall:
      json["recall"] = datasets::to_json(prompts.recall);
      break;
  }
  if (prompts.count) json["count"] = *prompts.count;
  return json;
}

}  // namespace

std::string PromptConfig::source_path() const {
  switch (form) {
    case PromptForm::jsonl:
      return path;
    case PromptForm::text:
      return text.path;
    case PromptForm::samples:
      return samples.path;
    case PromptForm::recall:
      break;
  }
  return recall.haystack.empty() ? "" : recall.haystack.front().path;
}

WorkloadConfig parse_generation_workload(const YAML::Node& node, const std::filesystem::path& file) {
  const YamlMap map(node, file, "a generation workload",
                    {"name", "kind", "prompts", "max_tokens", "temperature", "top_k", "top_p", "seed", "repeats",
                     "stop", "end_tokens", "ignore_eos", "batch", "block", "prompt"});
  WorkloadConfig workload;
  workload.name = map.name("name");
  workload.kind = "generation";
  workload.mode = Mode::stepwise;
  workload.prompt = Prompt::prefill;  // as served
  if (map.has("prompt"))
    workload.prompt = map.word("prompt", {"decode", "prefill"}) == "prefill" ? Prompt::prefill : Prompt::decode;
  if (map.has("block")) workload.block = map.integer("block", 1, largest_block);
  if (map.has("batch") && map.require("batch", "").IsScalar() && map.require("batch", "").Scalar() == "auto")
    workload.batch.reset();
  else if (map.has("batch"))
    workload.batch = map.integer("batch", 1, most_slots);
  GenerationConfig& config = workload.generation.emplace();
  config.prompts = parse_prompts(map);
  if (map.has("max_tokens")) config.max_tokens = map.integer("max_tokens", 1, largest_block);
  parse_sampling(map, config);
  if (map.has("stop")) config.stop = map.texts("stop");
  parse_ends(map, config);
  return workload;
}

nlohmann::json generation_to_json(const WorkloadConfig& workload) {
  const GenerationConfig& config = *workload.generation;
  nlohmann::json json = {{"name", workload.name},
                         {"kind", workload.kind},
                         {"prompts", to_json(config.prompts)},
                         {"max_tokens", config.max_tokens},
                         {"temperature", config.temperature},
                         {"seed", config.seed},
                         {"repeats", config.repeats},
                         {"stop", config.stop},
                         {"ignore_eos", config.ignore_eos},
                         {"block", workload.block},
                         {"prompt", prompt_name(workload.prompt)}};
  if (config.top_k > 0) json["top_k"] = config.top_k;
  if (config.top_p < 1.0) json["top_p"] = config.top_p;
  if (!config.end_tokens.empty()) json["end_tokens"] = config.end_tokens;
  if (workload.batch)
    json["batch"] = *workload.batch;
  else
    json["batch"] = "auto";
  return json;
}

}  // namespace replayeval
