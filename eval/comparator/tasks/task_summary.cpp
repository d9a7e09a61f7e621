#include "eval/comparator/tasks/task_summary.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <string>
#include <utility>

#include "eval/comparator/estimates.h"
#include "eval/comparator/finite_only.h"
#include "eval/metrics/equivalence.h"
#include "eval/metrics/paired_accuracy.h"
#include "eval/metrics/power.h"

namespace replayeval {
namespace {

using nlohmann::json;
using tasks::Aggregation;
using tasks::MetricSeries;

std::string name_of(const MetricSeries& series) {
  return series.filter == "none" ? series.metric : series.metric + "," + series.filter;
}

bool is_zero_one(const MetricSeries& series) {
  return series.aggregation == Aggregation::mean &&
         std::all_of(series.values.begin(), series.values.end(), [](double v) { return v == 0.0 || v == 1.0; });
}

bool is_perplexity(const MetricSeries& series) {
  return series.aggregation == Aggregation::perplexity || series.aggregation == Aggregation::weighted_perplexity;
}

bool is_ratio(const MetricSeries& series) {
  return series.aggregation == Aggregation::weighted_perplexity || series.aggregation == Aggregation::bits_per_byte;
}

std::vector<std::uint8_t> flags(const MetricSeries& series) { return {series.values.begin(), series.values.end()}; }

// Every document is an item of its own.
std::vector<std::int64_t> items(const MetricSeries& series) {
  std::vector<std::int64_t> numbers(series.values.size());
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}

// Values whose mean is the metric's (before its exponential), document by document. A ratio of sums R is linearised
// (Cochran 1977, 6.4): R + (value - R count) / mean count, so that the spread of the mean is that of R.
std::vector<double> summands(const MetricSeries& series) {
  if (!is_ratio(series)) return series.values;
  const double counts = std::accumulate(series.counts.begin(), series.counts.end(), 0.0);
  const double ratio = std::accumulate(series.values.begin(), series.values.end(), 0.0) / counts;
  const double mean_count = counts / static_cast<double>(series.counts.size());
  const double scale = series.aggregation == Aggregation::bits_per_byte ? -1.0 / std::log(2.0) : 1.0;
  std::vector<double> linear;
  for (std::size_t i = 0; i < series.values.size(); ++i)
    linear.push_back(scale * (ratio + (series.values[i] - ratio * series.counts[i]) / mean_count));
  return linear;
}

metrics::Estimate estimate(const MetricSeries& series, const metrics::IntervalOptions& options) {
  if (is_zero_one(series)) return metrics::accuracy(flags(series), items(series), options.confidence);
  if (is_perplexity(series)) return metrics::perplexity(summands(series), items(series), options);
  return metrics::clustered_t(summands(series), items(series), options);
}

bool all_finite(const std::vector<double>& values) {
  return std::all_of(values.begin(), values.end(), [](double value) { return std::isfinite(value); });
}

void add_value(const MetricSeries& series, const metrics::IntervalOptions& options, const std::string& arm,
               FiniteOnly& numbers) {
  const tasks::Estimate total = tasks::aggregate(series);
  reports::Metric metric;
  if (all_finite(summands(series)) && series.aggregation != Aggregation::f1 && series.aggregation != Aggregation::mcc)
    metric = metric_of(estimate(series, options));
  metric.value = total.value;
  metric.n = total.documents;
  numbers.put(arm, name_of(series), metric);
  if (total.standard_error)
    numbers.put(arm, name_of(series) + "_stderr", reports::Metric{*total.standard_error, {}, {}, total.documents});
}

std::string delta_name(const MetricSeries& series) {
  return is_perplexity(series) ? name_of(series) + "_relative" : name_of(series);
}

void add_mean_delta(const MetricSeries& baseline, const MetricSeries& series, const metrics::IntervalOptions& options,
                    const std::string& arm, FiniteOnly& numbers) {
  const std::vector<double> of_baseline = summands(baseline), of_arm = summands(series);
  if (!all_finite(of_baseline) || !all_finite(of_arm)) return;  // a ratio to no words or bytes at all
  metrics::MeanEstimate delta = metrics::paired_delta(of_baseline, of_arm, items(series), options);
  if (is_perplexity(series)) {
    delta.primary = metrics::relative_perplexity_delta(delta.primary);
    delta.t = metrics::relative_perplexity_delta(delta.t);
  }
  numbers.put(arm, delta_name(series), delta_of(delta.primary));
  numbers.put(arm, delta_name(series) + "_t", delta_of(delta.t));
}

json describe(const metrics::Equivalence& tested) {
  return {{"margin", tested.margin},           {"p_value", tested.p_value},        {"equivalent", tested.equivalent},
          {"low", tested.interval.low},        {"high", tested.interval.high},     {"confidence", tested.confidence},
          {"p_not_below", tested.p_not_below}, {"p_not_above", tested.p_not_above}};
}

void add_accuracy_delta(const RunContext& context, const WorkloadConfig& workload, const MetricSeries& baseline,
                        const MetricSeries& series, const std::string& arm, reports::Workload& result) {
  const double confidence = context.config.confidence;
  const metrics::PairedAccuracy pairs =
      metrics::paired_accuracy(flags(baseline), flags(series), items(series), confidence);
  const std::string name = name_of(series);
  result.deltas[arm][name] = delta_of(pairs.delta);
  result.data["answers"][arm][name] = {{"both_right", pairs.both_right},
                                       {"gained", pairs.gained},
                                       {"lost", pairs.lost},
                                       {"both_wrong", pairs.both_wrong}};
  const metrics::Power power{confidence, 0.8};
  const double discordant = metrics::planning_discordance(pairs);
  if (const auto smallest = metrics::minimum_detectable_delta(pairs.effective_n, discordant, power))
    result.data["detectable"][arm][name] = *smallest;
  if (!workload.task->margin) return;
  const double margin = *workload.task->margin;
  result.data["equivalence"][arm][name] = describe(metrics::equivalence(pairs, margin, confidence));
  json& needed = result.data["needed"][arm][name];
  needed["to_show_equivalence"] = metrics::pairs_to_show_equivalence(margin, discordant, power);
  if (margin <= discordant) needed["to_detect_margin"] = metrics::pairs_to_detect(margin, discordant, power);
}

void add_delta(const RunContext& context, const WorkloadConfig& workload, const MetricSeries& baseline,
               const MetricSeries& series, const std::string& arm, reports::Workload& result, FiniteOnly& numbers) {
  if (series.aggregation == Aggregation::f1 || series.aggregation == Aggregation::mcc) {
    reports::Delta delta;
    delta.value = tasks::aggregate(series, 0).value - tasks::aggregate(baseline, 0).value;
    delta.method = "difference of the two arms' values; no interval";
    result.deltas[arm][delta_name(series)] = delta;
  } else if (is_zero_one(baseline) && is_zero_one(series)) {
    add_accuracy_delta(context, workload, baseline, series, arm, result);
  } else {
    add_mean_delta(baseline, series, interval_options(context.config), arm, numbers);
  }
}

json describe(const MetricSeries& series) {
  return {{"name", name_of(series)},
          {"documents", series.values.size()},
          {"higher_is_better", series.higher_is_better},
          {"delta", delta_name(series)},
          {"unit", is_zero_one(series)     ? "points"
                   : is_perplexity(series) ? "percent"
                                           : "none"}};
}

bool has_values(const reports::Workload& result, const std::string& metric) {
  return std::any_of(result.arms.begin(), result.arms.end(),
                     [&](const auto& arm) { return arm.second.metrics.contains(metric); });
}

}  // namespace

std::vector<std::string> summarise_task(const RunContext& context, const WorkloadConfig& workload,
                                        const std::vector<tasks::TaskTotals>& arms, reports::Workload& result) {
  const std::vector<MetricSeries>& baseline = arms[context.baseline].series();
  FiniteOnly numbers(result);
  const metrics::IntervalOptions options = interval_options(context.config);
  for (std::size_t a = 0; a < arms.size(); ++a) {
    const std::string& name = context.arms[a].name;
    for (std::size_t i = 0; i < baseline.size(); ++i) {
      const MetricSeries& series = arms[a].series()[i];
      add_value(series, options, name, numbers);
      if (a != context.baseline) add_delta(context, workload, baseline[i], series, name, result, numbers);
    }
  }
  result.data["metrics"] = json::array();
  for (const MetricSeries& series : baseline)
    if (has_values(result, name_of(series))) result.data["metrics"].push_back(describe(series));
  return numbers.warnings();
}

void summarise_requests(const RunContext& context, const std::vector<std::vector<tasks::RequestScore>>& scores,
                        reports::Workload& result) {
  const auto count = static_cast<std::int64_t>(scores.size());
  if (count == 0) return;
  for (std::size_t arm = 0; arm < context.arms.size(); ++arm) {
    if (arm == context.baseline) continue;
    double squares = 0.0, largest = 0.0;
    std::int64_t same_greedy = 0;
    for (const auto& request : scores) {
      const tasks::RequestScore &base = request[context.baseline], &own = request[arm];
      const double difference = std::abs(own.log_likelihood - base.log_likelihood);
      squares += difference * difference;
      largest = std::max(largest, difference);
      same_greedy += own.is_greedy == base.is_greedy ? 1 : 0;
    }
    auto& measured = result.divergence[context.arms[arm].name];
    measured["log_likelihood_rms"] = {std::sqrt(squares / static_cast<double>(count)), {}, {}, count};
    measured["log_likelihood_max"] = {largest, {}, {}, count};
    measured["same_greedy"] = {static_cast<double>(same_greedy) / static_cast<double>(count), {}, {}, count};
  }
}

}  // namespace replayeval
