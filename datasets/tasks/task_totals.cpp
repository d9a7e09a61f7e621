#include "datasets/tasks/task_totals.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "datasets/tasks/python_random.h"

namespace replayeval::tasks {
namespace {

constexpr std::int64_t bootstrap_chunk = 1000;  // draws from one seed

double sum(const std::vector<double>& values) { return std::accumulate(values.begin(), values.end(), 0.0); }
double mean(const std::vector<double>& values) { return sum(values) / static_cast<double>(values.size()); }

double standard_deviation(const std::vector<double>& values) {
  const double center = mean(values);
  double squares = 0;
  for (const double value : values) squares += (value - center) * (value - center);
  return std::sqrt(squares / static_cast<double>(values.size() - 1));
}

double f1(const std::vector<double>& chosen, const std::vector<double>& right) {
  double both = 0, either = 0;
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    both += chosen[i] == 1 && right[i] == 1 ? 1 : 0;
    either += (chosen[i] == 1 ? 1 : 0) + (right[i] == 1 ? 1 : 0);
  }
  return either == 0 ? 0 : 2 * both / either;
}

// For any number of classes (Gorodkin 2004); 0 where one side holds a single class.
double mcc(const std::vector<double>& chosen, const std::vector<double>& right) {
  std::map<double, std::pair<double, double>> classes;
  double agree = 0;
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    ++classes[chosen[i]].first;
    ++classes[right[i]].second;
    agree += chosen[i] == right[i] ? 1 : 0;
  }
  const double n = static_cast<double>(chosen.size());
  double products = 0, chosen_squares = 0, right_squares = 0;
  for (const auto& [name, counts] : classes) {
    products += counts.first * counts.second;
    chosen_squares += counts.first * counts.first;
    right_squares += counts.second * counts.second;
  }
  const double spread = (n * n - chosen_squares) * (n * n - right_squares);
  return spread == 0 ? 0 : (agree * n - products) / std::sqrt(spread);
}

double statistic(Aggregation aggregation, const std::vector<double>& values, const std::vector<double>& counts) {
  switch (aggregation) {
    case Aggregation::mean:
      return mean(values);
    case Aggregation::perplexity:
      return std::exp(-mean(values));
    case Aggregation::weighted_perplexity:
      return std::exp(-sum(values) / sum(counts));
    case Aggregation::bits_per_byte:
      return -sum(values) / sum(counts) / std::log(2.0);
    case Aggregation::f1:
      return f1(values, counts);
    case Aggregation::mcc:
      return mcc(values, counts);
  }
  return 0;
}

std::optional<double> bootstrap_error(const MetricSeries& series, std::int64_t iterations) {
  if (iterations <= 0) return std::nullopt;
  const std::int64_t chunk = std::min(bootstrap_chunk, iterations);
  const std::size_t n = series.values.size();
  const bool paired = series.aggregation != Aggregation::perplexity;
  std::vector<double> results, values(n), counts(n);
  for (std::int64_t seed = 0; seed < iterations / chunk; ++seed) {
    PythonRandom random(static_cast<std::uint32_t>(seed));
    for (std::int64_t draw = 0; draw < chunk; ++draw) {
      for (std::size_t i = 0; i < n; ++i) {
        const auto from = static_cast<std::size_t>(random.random() * static_cast<double>(n));
        values[i] = series.values[from];
        if (paired) counts[i] = series.counts[from];
      }
      results.push_back(statistic(series.aggregation, values, counts));
    }
  }
  return results.size() > 1 ? std::optional(standard_deviation(results)) : std::nullopt;
}

}  // namespace

void TaskTotals::add(const std::vector<FilterScores>& scores) {
  for (const FilterScores& filter : scores)
    for (const MetricValue& value : filter.metrics) {
      auto found = std::find_if(series_.begin(), series_.end(), [&](const MetricSeries& series) {
        return series.filter == filter.filter && series.metric == value.metric;
      });
      if (found == series_.end()) {
        const MetricDefinition& definition = *find_metric(value.metric, type_);
        series_.push_back({filter.filter, value.metric, definition.aggregation, definition.higher_is_better, {}, {}});
        found = series_.end() - 1;
      }
      found->values.push_back(value.value);
      found->counts.push_back(value.count);
    }
}

Estimate aggregate(const MetricSeries& series, std::int64_t bootstrap_iterations) {
  Estimate estimate;
  estimate.documents = static_cast<std::int64_t>(series.values.size());
  estimate.value = statistic(series.aggregation, series.values, series.counts);
  if (series.values.size() < 2 || series.metric == "brier_score") return estimate;
  if (series.aggregation == Aggregation::mean)
    estimate.standard_error = standard_deviation(series.values) / std::sqrt(static_cast<double>(series.values.size()));
  else if (series.aggregation != Aggregation::weighted_perplexity && series.aggregation != Aggregation::bits_per_byte)
    estimate.standard_error = bootstrap_error(series, bootstrap_iterations);
  return estimate;
}

Estimate pool(std::span<const Estimate> tasks, bool weight_by_size) {
  Estimate pooled;
  double weights = 0, squares = 0;
  bool errors = !tasks.empty();
  for (const Estimate& task : tasks) {
    const double size = static_cast<double>(task.documents), weight = weight_by_size ? size : 1;
    pooled.documents += task.documents;
    pooled.value += task.value * weight;
    weights += weight;
    errors = errors && task.standard_error.has_value();
    const double error = task.standard_error.value_or(0);
    squares += error * error * (weight_by_size ? (size - 1) * size : 1);
  }
  pooled.value /= weights;
  const double documents = static_cast<double>(pooled.documents), count = static_cast<double>(tasks.size());
  if (errors)
    pooled.standard_error =
        weight_by_size ? std::sqrt(squares / (documents - count) / documents) : std::sqrt(squares) / count;
  return pooled;
}

}  // namespace replayeval::tasks
