// results_<date>.json, which the harness writes beside its samples.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "datasets/tasks/task_settings.h"

namespace replayeval::tasks {

struct SamplesName {
  std::string task, date;  // of samples_<task>_<date>.jsonl; tasks' names may hold underscores, dates do not
};
std::optional<SamplesName> parse_samples_name(const std::filesystem::path& file);

// Where the harness writes the results that belong to such samples.
std::filesystem::path results_beside(const std::filesystem::path& samples, const SamplesName& name);

struct HarnessSettings {
  TaskSettings settings;
  std::filesystem::path file;  // the results file that states them
};

// configs[task] of the results file `results`, or, if that is empty, of the one of the same date in the same folder.
// Nothing if there is none or (unless `results` names it) it lacks the task. Throws DataError naming the place.
std::optional<HarnessSettings> read_harness_settings(const std::filesystem::path& samples,
                                                     const std::filesystem::path& results);

}  // namespace replayeval::tasks
