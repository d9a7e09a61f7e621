#include "eval/comparator/tasks/task_config.h"

#include "eval/comparator/state_error_config.h"
#include "eval/comparator/yaml_map.h"

namespace replayeval {
namespace {

constexpr std::int64_t largest_block = std::int64_t{1} << 24, most_slots = 65536;

TaskConfig parse_source(const YamlMap& workload) {
  const YAML::Node node = workload.require("source", "a file of samples or of plain JSONL");
  TaskConfig config;
  config.place = workload.place("source");
  try {
    config.source = tasks::parse_task_source(json_of(node, workload.file()), "source");
  } catch (const datasets::DataError& error) {
    workload.fail("source", error.what());
  }
  if (config.source.path.empty()) workload.fail("source", "expected the path of a file, found nothing");
  return config;
}

}  // namespace

WorkloadConfig parse_task_workload(const YAML::Node& node, const std::filesystem::path& file) {
  const YamlMap map(node, file, "a task workload",
                    {"name", "kind", "source", "block", "mode", "prompt", "margin", "seed", "batch", "state_error"});
  WorkloadConfig workload;
  workload.name = map.name("name");
  workload.kind = "task";
  workload.prompt = Prompt::prefill;  // as served
  if (map.has("prompt"))
    workload.prompt = map.word("prompt", {"decode", "prefill"}) == "prefill" ? Prompt::prefill : Prompt::decode;
  if (map.has("mode"))
    workload.mode =
        map.word("mode", {"teacher_forced", "stepwise"}) == "stepwise" ? Mode::stepwise : Mode::teacher_forced;
  if (map.has("block")) workload.block = map.integer("block", 1, largest_block);
  workload.task = parse_source(map);
  if (map.has("seed")) workload.task->seed = static_cast<std::uint64_t>(map.integer("seed", 0));
  if (map.has("batch")) workload.batch = map.integer("batch", 1, most_slots);
  if (map.has("state_error")) workload.state_error = parse_state_error(map, 0, workload.prompt);
  if (map.has("margin")) workload.task->margin = map.number("margin", 0.0, 1.0);
  return workload;
}

nlohmann::json task_to_json(const WorkloadConfig& workload) {
  nlohmann::json json = {{"name", workload.name},
                         {"kind", workload.kind},
                         {"source", tasks::to_json(workload.task->source)},
                         {"block", workload.block},
                         {"mode", mode_name(workload.mode)},
                         {"prompt", prompt_name(workload.prompt)}};
  if (workload.task->margin) json["margin"] = *workload.task->margin;
  if (workload.task->seed != 0) json["seed"] = workload.task->seed;
  if (workload.batch) json["batch"] = *workload.batch;
  if (workload.state_error) json["state_error"] = to_json(*workload.state_error);
  return json;
}

}  // namespace replayeval
