// A task's metrics from those of its documents.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "datasets/tasks/task_metrics.h"

namespace replayeval::tasks {

// One metric under one filter, document by document in the order they were added.
struct MetricSeries {
  std::string filter, metric;
  Aggregation aggregation = Aggregation::mean;
  bool higher_is_better = true;
  std::vector<double> values, counts;  // as in MetricValue
};

constexpr std::int64_t harness_bootstrap_iterations = 100'000;

struct Estimate {
  double value = 0;
  std::optional<double> standard_error;  // absent where the harness has "N/A"
  std::int64_t documents = 0;
};

class TaskTotals {
 public:
  explicit TaskTotals(RequestType type) : type_(type) {}
  void add(const std::vector<FilterScores>& scores);
  const std::vector<MetricSeries>& series() const { return series_; }

 private:
  RequestType type_;
  std::vector<MetricSeries> series_;
};

// The aggregation, with the standard error that the harness gives it: s / √n (s over n-1) for means; for perplexity, f1
// and mcc the spread of a bootstrap whose random numbers are those of the harness; none for weighted ones, or of one
// document. `bootstrap_iterations` 0: no bootstrap. `series` is not empty.
Estimate aggregate(const MetricSeries& series, std::int64_t bootstrap_iterations = harness_bootstrap_iterations);

// A group of tasks, as the harness's mean over them: by their numbers of documents, or (weight_by_size: false) all
// alike. The standard error is absent if one of theirs is.
Estimate pool(std::span<const Estimate> tasks, bool weight_by_size);

}  // namespace replayeval::tasks
