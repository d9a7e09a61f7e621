#include "eval/comparator/churn/churn_config.h"

#include <array>
#include <string_view>
#include <utility>

#include "eval/comparator/yaml_map.h"

namespace replayeval {
namespace {

constexpr std::int64_t longest_sequence = std::int64_t{1} << 20;
constexpr std::int64_t most_sequences = 65536;
constexpr std::array event_words = {std::pair(ChurnEvent::What::evict, std::string_view("evict")),
                                    std::pair(ChurnEvent::What::save, std::string_view("save")),
                                    std::pair(ChurnEvent::What::pad, std::string_view("pad"))};

double chance(const YamlMap& map, const std::string& key, double otherwise) {
  if (!map.has(key)) return otherwise;
  const double value = map.number_from(key, 0.0);
  if (value > 1.0) map.fail(key, "above 1; expected a chance from 0 to 1");
  return value;
}

// {step: 4, evict: 2}
ChurnEvent parse_event(const YAML::Node& node, const std::filesystem::path& file) {
  const YamlMap map(node, file, "a scripted event", {"step", "evict", "save", "pad"});
  ChurnEvent event;
  event.place = place_of(file, node.Mark());
  event.step = map.integer("step", 0, longest_sequence);
  int found = 0;
  for (const auto& [what, word] : event_words) {
    const std::string key(word);
    if (!map.has(key)) continue;
    ++found;
    event.what = what;
    event.value =
        what == ChurnEvent::What::pad ? map.integer(key, 1, most_sequences) : map.integer(key, 0, most_sequences);
  }
  if (found != 1)
    map.fail("step", "stands with " + std::to_string(found) + " events; expected one of evict, save, pad");
  return event;
}

void parse_events(const YamlMap& map, ChurnConfig& config) {
  config.evict = chance(map, "evict", config.evict);
  config.save = chance(map, "save", config.save);
  config.pad = chance(map, "pad", config.pad);
  if (!map.has("script")) return;
  for (const char* key : {"evict", "save", "pad"})
    if (map.has(key)) map.fail(key, "a chance stands beside a script; expected one of the two");
  for (const YAML::Node& node : map.list("script", "a list of events, each with step and one of evict, save, pad"))
    config.script.push_back(parse_event(node, map.file()));
}

}  // namespace

WorkloadConfig parse_churn_workload(const YAML::Node& node, const std::filesystem::path& file) {
  const YamlMap map(node, file, "a churn workload",
                    {"name", "kind", "batches", "level", "mixers", "sequences", "length", "prompt_tokens", "block",
                     "prompt", "page_length", "seed", "evict", "save", "pad", "script"});
  WorkloadConfig workload;
  workload.name = map.name("name");
  workload.kind = "churn";
  workload.prompt = Prompt::prefill;  // as served
  workload.block = 16;
  ChurnConfig& config = workload.churn.emplace();
  if (map.has("batches")) config.batches = map.integers("batches", 1, most_sequences);
  if (map.has("level")) config.whole_model = map.word("level", {"model", "mixers"}) == "model";
  if (map.has("mixers")) config.mixers = map.integer("mixers", 1, longest_sequence);
  if (map.has("sequences")) config.sequences = map.integer("sequences", 1, most_sequences);
  if (map.has("length")) config.length = map.integer("length", 2, longest_sequence);
  if (map.has("prompt_tokens")) config.prompt_tokens = map.integer("prompt_tokens", 2, longest_sequence);
  if (map.has("block")) workload.block = map.integer("block", 1, longest_sequence);
  if (map.has("prompt"))
    workload.prompt = map.word("prompt", {"decode", "prefill"}) == "prefill" ? Prompt::prefill : Prompt::decode;
  if (map.has("page_length")) config.page_length = map.integer("page_length", 1, longest_sequence);
  if (map.has("seed")) config.seed = static_cast<std::uint64_t>(map.integer("seed", 0));
  if (config.prompt_tokens >= config.length)
    map.fail("prompt_tokens",
             std::to_string(config.prompt_tokens) + "; expected less than length, " + std::to_string(config.length));
  if (workload.block >= config.prompt_tokens)
    map.fail("block", std::to_string(workload.block) + "; expected less than prompt_tokens, " +
                          std::to_string(config.prompt_tokens) + ", so that prompts take several calls");
  parse_events(map, config);
  return workload;
}

nlohmann::json churn_to_json(const WorkloadConfig& workload) {
  const ChurnConfig& config = *workload.churn;
  nlohmann::json json = {{"name", workload.name},
                         {"kind", workload.kind},
                         {"batches", config.batches},
                         {"level", config.whole_model ? "model" : "mixers"},
                         {"length", config.length},
                         {"prompt_tokens", config.prompt_tokens},
                         {"block", workload.block},
                         {"prompt", prompt_name(workload.prompt)},
                         {"page_length", config.page_length},
                         {"seed", config.seed}};
  if (config.mixers) json["mixers"] = *config.mixers;
  if (config.sequences) json["sequences"] = *config.sequences;
  if (config.script.empty()) {
    json["evict"] = config.evict;
    json["save"] = config.save;
    json["pad"] = config.pad;
  }
  for (const ChurnEvent& event : config.script)
    for (const auto& [what, word] : event_words)
      if (what == event.what) json["script"].push_back({{"step", event.step}, {word, event.value}});
  return json;
}

}  // namespace replayeval
