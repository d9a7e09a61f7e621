#include "eval/metrics/task_family.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <stdexcept>

namespace replayeval::metrics {
namespace {

void check_tasks(std::span<const PairedAccuracy> tasks) {
  if (tasks.empty()) throw std::invalid_argument("no tasks to pool, expected at least 1");
  for (const PairedAccuracy& task : tasks) {
    if (!task.delta.interval) throw std::invalid_argument("a task to pool has no interval, expected one of each");
    if (task.delta.confidence != tasks.front().delta.confidence)
      throw std::invalid_argument(
          fmt::format("a task to pool has an interval of confidence {}, expected {} as the first",
                      task.delta.confidence, tasks.front().delta.confidence));
  }
}

}  // namespace

std::vector<double> holm(std::span<const double> p_values) {
  for (const double p : p_values)
    if (!(p >= 0.0 && p <= 1.0)) throw std::invalid_argument(fmt::format("p-value is {}, expected 0 to 1", p));
  std::vector<std::size_t> order(p_values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return p_values[a] < p_values[b]; });
  std::vector<double> adjusted(p_values.size());
  double largest = 0.0;
  for (std::size_t rank = 0; rank < order.size(); ++rank) {
    largest = std::max(largest, p_values[order[rank]] * static_cast<double>(order.size() - rank));
    adjusted[order[rank]] = std::min(1.0, largest);
  }
  return adjusted;
}

Estimate pooled_delta(std::span<const PairedAccuracy> tasks, Weighting weighting) {
  check_tasks(tasks);
  Estimate pooled;
  std::int64_t gained = 0, lost = 0;
  for (const PairedAccuracy& task : tasks) {
    pooled.n += task.n;
    pooled.units += task.items;
    gained += task.gained;
    lost += task.lost;
  }
  double below = 0.0, above = 0.0;
  for (const PairedAccuracy& task : tasks) {
    const double weight = weighting == Weighting::tasks ? 1.0 / static_cast<double>(tasks.size())
                                                        : static_cast<double>(task.n) / static_cast<double>(pooled.n);
    pooled.value += weight * task.delta.value;
    below += std::pow(weight * (task.delta.value - task.delta.interval->low), 2);
    above += std::pow(weight * (task.delta.interval->high - task.delta.value), 2);
  }
  pooled.interval = Interval{pooled.value - std::sqrt(below), pooled.value + std::sqrt(above)};
  if (weighting == Weighting::questions && pooled.units == pooled.n) pooled.p_value = mcnemar_exact(gained, lost);
  pooled.confidence = tasks.front().delta.confidence;
  pooled.kind = IntervalKind::pooled;
  pooled.method = fmt::format("MOVER of the score intervals of {} tasks, {} weighted alike", tasks.size(),
                              weighting == Weighting::tasks ? "tasks" : "questions");
  return pooled;
}

}  // namespace replayeval::metrics
