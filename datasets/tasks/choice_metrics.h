// The metrics of multiple_choice.
#pragma once

#include <span>
#include <string_view>

#include "datasets/tasks/task_metrics.h"

namespace replayeval::tasks {

// `scores`: one for each of the document's requests.
MetricValue choice_metric(std::string_view name, const TaskDocument& document, std::span<const RequestScore> scores);

}  // namespace replayeval::tasks
