#include "eval/comparator/estimates.h"

namespace replayeval {
namespace {

const char* kind_name(metrics::IntervalKind kind) {
  switch (kind) {
    case metrics::IntervalKind::bootstrap:
      return "bootstrap";
    case metrics::IntervalKind::t:
      return "t";
    case metrics::IntervalKind::score:
      return "score";
    case metrics::IntervalKind::exact:
      return "exact";
    case metrics::IntervalKind::pooled:
      break;
  }
  return "pooled";
}

}  // namespace

reports::Metric metric_of(const metrics::Estimate& estimate) {
  reports::Metric metric;
  metric.value = estimate.value;
  metric.n = estimate.n;
  if (estimate.interval) {
    metric.low = estimate.interval->low;
    metric.high = estimate.interval->high;
  }
  return metric;
}

reports::Delta delta_of(const metrics::Estimate& estimate) {
  reports::Delta delta;
  delta.value = estimate.value;
  delta.p_value = estimate.p_value;
  delta.method = estimate.method;
  delta.units = estimate.units;
  if (estimate.interval) {
    delta.interval_kind = kind_name(estimate.kind);
    delta.low = estimate.interval->low;
    delta.high = estimate.interval->high;
    delta.confidence = estimate.confidence;
  }
  return delta;
}

metrics::IntervalOptions interval_options(const RunConfig& config) {
  metrics::IntervalOptions options;
  options.confidence = config.confidence;
  options.bootstrap_samples = config.bootstrap_samples;
  options.seed = config.seed;
  return options;
}

}  // namespace replayeval
