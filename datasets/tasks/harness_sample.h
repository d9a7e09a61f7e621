// A row of samples_<task>_<date>.jsonl, which lm-evaluation-harness (0.4) writes with --log_samples, as a document.
#pragma once

#include <optional>
#include <string>

#include "datasets/tasks/task_document.h"
#include "datasets/tasks/task_settings.h"

namespace replayeval::tasks {

// Reads rows in order: whether targets are lists is decided by the first one, as the harness does.
class HarnessSampleReader {
 public:
  // Where the settings say no request type, the first row decides by its arguments' shape; where they name no metrics,
  // its "metrics".
  explicit HarnessSampleReader(TaskSettings settings) : settings_(std::move(settings)) {}

  // `place` is "FILE: line N". Throws DataError naming key, what was found and what was expected.
  TaskDocument read(const OrderedJson& row, std::int64_t line, const std::string& place);
  const TaskSettings& settings() const { return settings_; }

 private:
  void read_multiple_choice(const OrderedJson& row, const std::string& place, TaskDocument& document) const;
  void read_generation(const OrderedJson& row, const std::string& place, TaskDocument& document);

  TaskSettings settings_;
  std::optional<bool> several_targets_;
};

// Whether a row has what marks it as one of the harness's.
bool is_harness_sample(const OrderedJson& row);

}  // namespace replayeval::tasks
