// Finding what a run's configuration names.
#include <fmt/format.h>

#include <fstream>
#include <sstream>

#include "datasets/one_line.h"
#include "eval/comparator/run_config.h"
#include "eval/comparator/yaml_map.h"

namespace replayeval {
namespace {

namespace fs = std::filesystem;

// The part of a glob before its first wildcard component: the folder that must be there whatever the glob matches, "."
// where it begins with a wildcard.
fs::path fixed_part(const std::string& pattern) {
  fs::path fixed;
  for (const fs::path& part : fs::path(pattern)) {
    if (part.string().find_first_of("*?[") != std::string::npos) return fixed.empty() ? fs::path(".") : fixed;
    fixed /= part;
  }
  return fixed;
}

enum class Wanted { folder, file, files };  // `files`: a file, a folder or a glob

const char* name_of(Wanted wanted) {
  if (wanted == Wanted::folder) return "folder";
  return wanted == Wanted::file ? "file" : "file or folder";
}

// The folder that `path` is relative to: the config file's, or else the working directory.
fs::path root_of(const std::string& path, const fs::path& config_file, const std::string& place, const std::string& key,
                 Wanted kind) {
  const fs::path wanted = kind == Wanted::files ? fixed_part(path) : fs::path(path);
  const auto there = [&](const fs::path& candidate) {
    std::error_code ignored;
    return kind == Wanted::folder ? fs::is_directory(candidate, ignored) : fs::exists(candidate, ignored);
  };
  const fs::path beside = config_file.parent_path();
  if (there(beside / wanted)) return beside.empty() ? fs::path(".") : beside;
  if (there(wanted)) return ".";
  const auto named = [](const fs::path& candidate) {
    return datasets::one_line(candidate.lexically_normal().string(), 4096);
  };
  const std::string first = named(beside / wanted), second = named(wanted);  // an absolute path stays as it is
  const std::string looked = first == second ? fmt::format("'{}' is not there", first)
                                             : fmt::format("neither '{}' nor '{}' is there", first, second);
  throw ConfigError(fmt::format("{}: key '{}': expected an existing {}; {}", place, key, name_of(kind), looked));
}

}  // namespace

RunConfig load_run_config(const fs::path& file) {
  RunConfig config = parse_run_config(read_yaml_file(file), file);
  const fs::path root = root_of(config.checkpoint, file, config.checkpoint_place, "checkpoint",
                                config.random_weights ? Wanted::files : Wanted::folder);
  config.checkpoint_folder = (root / config.checkpoint).lexically_normal();
  for (WorkloadConfig& workload : config.workloads)
    for (SourceConfig& source : workload.sources)
      if (!source.random_ids) source.root = root_of(source.text.path, file, source.place, "path", Wanted::files);
  for (WorkloadConfig& workload : config.workloads)
    for (RecallConfig& task : workload.recall)
      if (!task.spec.haystack.empty())
        task.root = root_of(task.spec.haystack.front().path, file, task.place, "haystack", Wanted::files);
  for (WorkloadConfig& workload : config.workloads)
    if (workload.task)
      workload.task->root = root_of(workload.task->source.path, file, workload.task->place, "source", Wanted::file);
  for (WorkloadConfig& workload : config.workloads)
    if (workload.generation)
      if (PromptConfig& prompts = workload.generation->prompts; !prompts.source_path().empty())
        prompts.root = root_of(
            prompts.source_path(), file, prompts.place, "prompts",
            prompts.form == PromptForm::jsonl || prompts.form == PromptForm::samples ? Wanted::file : Wanted::files);
  return config;
}

}  // namespace replayeval
