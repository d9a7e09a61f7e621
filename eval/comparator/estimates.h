// Statistics as results.json holds them.
#pragma once

#include "eval/comparator/run_config.h"
#include "eval/metrics/statistics.h"
#include "reports/results.h"

namespace replayeval {

reports::Metric metric_of(const metrics::Estimate& estimate);
reports::Delta delta_of(const metrics::Estimate& estimate);
metrics::IntervalOptions interval_options(const RunConfig& config);

}  // namespace replayeval
