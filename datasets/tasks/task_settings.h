// What a task's answers are judged by: request type, filters and metrics, as the harness's results file or a run's
// config states them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "datasets/tasks/task_document.h"

namespace replayeval::tasks {

struct FilterStep {
  std::string function;  // "regex", "take_first", ...
  OrderedJson options;   // an object
};

struct FilterSpec {
  std::string name = "none";
  std::vector<FilterStep> steps;
};

struct MetricSpec {
  std::string name;
  OrderedJson options;           // an object: what exact_match ignores
  std::string aggregation = {};  // as the harness names it; "": not said
};

struct TaskSettings {
  std::string task;
  std::optional<RequestType> type;
  std::vector<MetricSpec> metrics;
  std::vector<FilterSpec> filters;  // empty: one, "none", that takes the first response
  std::int64_t repeats = 1;
  std::string target_delimiter = " ", fewshot_delimiter = "\n\n";
  OrderedJson doc_to_choice, doc_to_target;  // null where unknown
  std::string gold_key;                      // member of doc that holds the right choice's number; empty: as usual
  std::int64_t gold_base = 0;                // the number of the first choice under gold_key
  bool own_code = false;                     // the task computes its metrics itself (process_results)
};

// Of the entry configs[task] of a results file, at `place`. Throws DataError naming the key and what was expected.
TaskSettings settings_of_config(const OrderedJson& config, const std::string& place);

// SHA-256 (hex) of all that answers are judged by: two tasks of the same file and fingerprint have the same numbers.
std::string fingerprint(const TaskSettings& settings);

// [{name, filter: [{function, ...}]}] and [{metric, ...} | "name"], each name once.
std::vector<FilterSpec> parse_filters(const OrderedJson& list, const std::string& place);
std::vector<MetricSpec> parse_metrics(const OrderedJson& list, const std::string& place);

// The metrics that the harness computes where a task names none.
std::vector<MetricSpec> default_metrics(RequestType type);

}  // namespace replayeval::tasks
