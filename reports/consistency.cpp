#include "reports/consistency.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "reports/metric_names.h"
#include "reports/results_io.h"

namespace replayeval::reports {
namespace {

using nlohmann::json;

// Sums over the same numbers in another order: a few units in the last place, times the number of tokens at worst.
constexpr double rounding = 1e-9;

bool close(double one, double other) {
  return std::abs(one - other) <= rounding * std::max({1.0, std::abs(one), std::abs(other)});
}

// One place in the results, for messages.
class Place {
 public:
  explicit Place(std::string file, std::string pointer = "") : file_(std::move(file)), pointer_(std::move(pointer)) {}
  Place operator/(const std::string& step) const {
    std::string escaped;
    for (const char letter : step) escaped += letter == '~' ? "~0" : letter == '/' ? "~1" : std::string(1, letter);
    return Place(file_, pointer_ + "/" + escaped);
  }
  Place operator/(std::size_t index) const { return *this / std::to_string(index); }
  [[noreturn]] void fault(const std::string& what) const {
    throw ResultsError(fmt::format("{}: {}: {}: the results contradict themselves", file_, pointer_, what));
  }
  void expect_close(double found, double expected, const std::string& why) const {
    if (!close(found, expected)) fault(fmt::format("found {}, expected {} ({})", found, expected, why));
  }

 private:
  std::string file_, pointer_;
};

template <typename Number>
void check_interval(const Number& number, const Place& place) {
  if (!number.low || !number.high) return;
  const double slack = rounding * std::max({std::abs(number.value), std::abs(*number.low), std::abs(*number.high)});
  if (*number.low > number.value + slack || *number.high < number.value - slack)
    place.fault(fmt::format("value {} lies outside its interval [{}, {}]", number.value, *number.low, *number.high));
}

// A t interval and its p-value are two faces of one test.
void check_t(const Delta& delta, const Place& place) {
  if (!delta.method.starts_with("paired t ") || !delta.p_value || !delta.low || !delta.confidence) return;
  const double edge = 1.0 - *delta.confidence;
  if (std::abs(*delta.p_value - edge) < 1e-6) return;
  const bool clear_of_zero = *delta.low > 0.0 || *delta.high < 0.0;
  if (clear_of_zero != (*delta.p_value < edge))
    place.fault(fmt::format("p-value {} and the interval [{}, {}] do not belong together", *delta.p_value, *delta.low,
                            *delta.high));
}

template <typename Map>
const typename Map::mapped_type* find(const Map& map, const std::string& key) {
  const auto found = map.find(key);
  return found == map.end() ? nullptr : &found->second;
}

// exp(-d) - 1 turns the ends of an interval around.
void check_ratio_of(const Delta& log_likelihood, const Delta& ratio, const Place& place) {
  const auto expect = [&](const char* part, double found, double from) {
    // Deltas of replay arms are as small as 1e-9: relative to their own size, too.
    const double expected = std::expm1(-from);
    if (std::abs(found - expected) > rounding * std::max(std::abs(found), std::abs(expected)) + 1e-15)
      (place / part).fault(fmt::format("found {}, expected {} (exp of the log-likelihood's)", found, expected));
  };
  expect("value", ratio.value, log_likelihood.value);
  if (!ratio.low || !log_likelihood.low) return;
  expect("low", *ratio.low, *log_likelihood.high);
  expect("high", *ratio.high, *log_likelihood.low);
}

void check_perplexity_deltas(const std::map<std::string, Delta>& deltas, const Place& place) {
  for (const auto& [plain, ratio] : {std::pair{names::delta_log_likelihood, names::perplexity_ratio},
                                     std::pair{names::delta_log_likelihood_t, names::perplexity_ratio_t}}) {
    const Delta *of_log = find(deltas, plain), *of_ratio = find(deltas, ratio);
    if (of_log != nullptr && of_ratio != nullptr) check_ratio_of(*of_log, *of_ratio, place / ratio);
  }
}

// A delta has up to two intervals, `name` and `name_t`, of the same value and units; the first reaches as far as t's.
void check_twin(const std::map<std::string, Delta>& deltas, const std::string& name, const Delta& delta,
                const Place& place) {
  const Delta* twin = find(deltas, name + "_t");
  if (twin == nullptr) return;
  (place / "value").expect_close(delta.value, twin->value, "that of " + name + "_t");
  if (delta.confidence != twin->confidence || delta.units != twin->units)
    place.fault(fmt::format("confidence and units are not those of {}_t", name));
  if (delta.method.find("bootstrap and t (") == std::string::npos || !delta.low || !twin->low) return;
  const double slack = rounding * std::max(std::abs(*twin->low), std::abs(*twin->high));
  if (*delta.low > *twin->low + slack || *delta.high < *twin->high - slack)
    place.fault(fmt::format("the interval [{}, {}] does not reach as far as that of {}_t, [{}, {}]", *delta.low,
                            *delta.high, name, *twin->low, *twin->high));
}

// `name` of a delta without the "_t" of a second method.
std::string plain_name(const std::string& name) {
  return name.ends_with("_t") ? name.substr(0, name.size() - 2) : name;
}

void check_difference(const ArmResult& own, const ArmResult& baseline, const std::string& name, const Delta& delta,
                      const Place& place) {
  const std::string metric = plain_name(name);
  const Metric *of_arm = find(own.metrics, metric), *of_baseline = find(baseline.metrics, metric);
  if (of_arm != nullptr && of_baseline != nullptr) {
    (place / "value").expect_close(delta.value, of_arm->value - of_baseline->value, "the two arms' difference");
    return;
  }
  constexpr std::string_view relative = "_relative";
  if (!metric.ends_with(relative)) return;
  const std::string of = metric.substr(0, metric.size() - relative.size());
  of_arm = find(own.metrics, of);
  of_baseline = find(baseline.metrics, of);
  if (of_arm != nullptr && of_baseline != nullptr && of_baseline->value != 0.0)
    (place / "value").expect_close(delta.value, of_arm->value / of_baseline->value - 1.0, "the two arms' ratio");
}

void check_deltas(const Workload& workload, const std::string& baseline, const Place& place) {
  const ArmResult* reference = find(workload.arms, baseline);
  for (const auto& [arm, deltas] : workload.deltas) {
    if (arm == baseline) (place / arm).fault("a delta of the baseline from itself");
    const ArmResult* own = find(workload.arms, arm);
    if (own == nullptr) (place / arm).fault("deltas of an arm that has no results of its own");
    for (const auto& [name, delta] : deltas) {
      const Place here = place / arm / name;
      check_interval(delta, here);
      check_t(delta, here);
      check_twin(deltas, name, delta, here);
      if (reference != nullptr) check_difference(*own, *reference, name, delta, here);
    }
    if (workload.kind == "perplexity") check_perplexity_deltas(deltas, place / arm);
  }
}

void check_ascending(const std::map<std::string, Metric>& metrics, const Place& place) {
  const Metric* before = nullptr;
  for (const char* name : {names::kl_median, names::kl_p90, names::kl_p99, names::kl_p999, names::kl_max}) {
    const Metric* own = find(metrics, name);
    if (own == nullptr) continue;
    if (before != nullptr && own->value < before->value)
      (place / name).fault(fmt::format("found {}, below the quantile before it, {}", own->value, before->value));
    before = own;
  }
}

// Shares are shares, a mean is no more than the largest, and every token that was scored is behind each of them.
void check_divergence(const std::map<std::string, Metric>& metrics, const Workload& workload, const Place& place) {
  check_ascending(metrics, place);
  for (const char* name : {names::same_top1, names::tie_share, "top1_changed_untied"}) {
    const Metric* share = find(metrics, name);
    if (share != nullptr && (share->value < 0.0 || share->value > 1.0))
      (place / name).fault(fmt::format("found {}, expected a share from 0 to 1", share->value));
  }
  for (const auto& [name, metric] : metrics)
    if (name.starts_with("kl_") && metric.value < -rounding)
      (place / name).fault(fmt::format("found {}, expected 0 or more, as a KL divergence is", metric.value));
  const Metric *mean = find(metrics, names::kl_mean), *largest = find(metrics, names::kl_max);
  if (mean != nullptr && largest != nullptr && mean->value > largest->value * (1.0 + rounding))
    (place / names::kl_mean).fault(fmt::format("found {}, above kl_max, {}", mean->value, largest->value));
  if (workload.kind != "perplexity" || !workload.data.is_object() || !workload.data.contains("tokens_scored")) return;
  const std::int64_t tokens = workload.data.at("tokens_scored");
  for (const auto& [name, metric] : metrics)
    if (metric.n && *metric.n != tokens)
      (place / name / "n").fault(fmt::format("found {}, expected {}, the tokens scored", *metric.n, tokens));
}

void check_metrics(const std::map<std::string, Metric>& metrics, const Place& place) {
  for (const auto& [name, metric] : metrics) check_interval(metric, place / name);
  const Metric *mean = find(metrics, names::mean_log_likelihood), *perplexity = find(metrics, names::perplexity);
  if (mean != nullptr && perplexity != nullptr)
    (place / names::perplexity / "value").expect_close(perplexity->value, std::exp(-mean->value), "exp(-mean)");
}

// What a portable baseline was compared with.
void check_stored(const Workload& workload, const Place& place) {
  for (std::size_t i = 0; i < workload.against.size(); ++i) {
    const StoredComparison& row = workload.against[i];
    const Place here = place / i;
    for (const auto& [name, delta] : row.deltas) {
      check_interval(delta, here / "deltas" / name);
      check_t(delta, here / "deltas" / name);
    }
    check_perplexity_deltas(row.deltas, here / "deltas");
    check_metrics(row.divergence, here / "divergence");
    check_divergence(row.divergence, workload, here / "divergence");
  }
}

// All arms answer the same questions.
void check_counts(const Workload& workload, const Place& place) {
  std::map<std::string, std::pair<std::string, std::int64_t>> seen;
  for (const auto& [arm, result] : workload.arms)
    for (const auto& [name, metric] : result.metrics) {
      if (!metric.n) continue;
      const auto [first, fresh] = seen.try_emplace(name, arm, *metric.n);
      if (!fresh && first->second.second != *metric.n)
        (place / "arms" / arm / "metrics" / name / "n")
            .fault(fmt::format("found {}, expected {} as of arm '{}'", *metric.n, first->second.second,
                               first->second.first));
    }
  if (!workload.data.is_object()) return;
  if (workload.kind == "task" && workload.data.contains("documents")) {
    const std::int64_t documents = workload.data.at("documents");
    for (const auto& [name, first] : seen)
      if (first.second != documents)
        (place / "arms" / first.first / "metrics" / name / "n")
            .fault(fmt::format("found {}, expected {}, the task's documents", first.second, documents));
  }
  if (workload.kind != "perplexity" || !workload.data.contains("tokens_scored")) return;
  const std::int64_t tokens = workload.data.at("tokens_scored");
  if (const auto found = seen.find(names::perplexity); found != seen.end() && found->second.second != tokens)
    (place / "data" / "tokens_scored")
        .fault(fmt::format("found {}, expected {}, the n of the perplexities", tokens, found->second.second));
}

void check_buckets(const Workload& workload, const std::string& baseline, const Place& place) {
  std::int64_t previous_end = 0;
  for (std::size_t i = 0; i < workload.positions.size(); ++i) {
    const PositionBucket& bucket = workload.positions[i];
    const Place here = place / i;
    if (bucket.begin < previous_end || bucket.end <= bucket.begin)
      here.fault(fmt::format("[{}, {}) does not lie behind {}", bucket.begin, bucket.end, previous_end));
    previous_end = bucket.end;
    for (const auto& [arm, delta] : bucket.delta) check_interval(delta, here / "delta" / arm);
    for (const auto& [arm, metric] : bucket.perplexity) check_interval(metric, here / "perplexity" / arm);
    const Metric* reference = find(bucket.perplexity, baseline);
    for (const auto& [arm, delta] : bucket.delta) {
      const Metric* own = find(bucket.perplexity, arm);
      if (own != nullptr && reference != nullptr && own->value > 0.0 && reference->value > 0.0)
        (here / "delta" / arm / "value")
            .expect_close(delta.value, std::log(reference->value / own->value), "of the two perplexities");
    }
  }
}

void check_cells(const Workload& workload, const std::string& baseline, const Place& place) {
  for (std::size_t i = 0; i < workload.recall.size(); ++i) {
    const RecallCell& cell = workload.recall[i];
    const Place here = place / i;
    for (const auto& [arm, metric] : cell.accuracy) check_interval(metric, here / "accuracy" / arm);
    const Metric* reference = find(cell.accuracy, baseline);
    for (const auto& [arm, delta] : cell.delta) {
      check_interval(delta, here / "delta" / arm);
      const Metric* own = find(cell.accuracy, arm);
      if (own != nullptr && reference != nullptr)
        (here / "delta" / arm / "value").expect_close(delta.value, own->value - reference->value, "of two accuracies");
    }
  }
}

// data/answers/ARM/METRIC: right and wrong answers of a task.
void check_answers(const Workload& workload, const Place& place) {
  if (!workload.data.is_object() || !workload.data.contains("answers")) return;
  for (const auto& [arm, metrics] : workload.data.at("answers").items())
    for (const auto& [name, counts] : metrics.items()) {
      const Place here = place / "data" / "answers" / arm / name;
      const auto deltas = workload.deltas.find(arm);
      const Delta* delta = deltas == workload.deltas.end() ? nullptr : find(deltas->second, name);
      if (delta == nullptr) here.fault("answers without a delta");
      const double gained = counts.at("gained"), lost = counts.at("lost");
      const double n = gained + lost + counts.at("both_right").get<double>() + counts.at("both_wrong").get<double>();
      if (n <= 0.0) here.fault("no answers at all");
      here.expect_close((gained - lost) / n, delta->value, "the delta beside it");
      const ArmResult* own = find(workload.arms, arm);
      const Metric* metric = own == nullptr ? nullptr : find(own->metrics, name);
      if (metric != nullptr && metric->n && static_cast<double>(*metric->n) != n)
        here.fault(fmt::format("{} answers, expected the metric's n, {}", n, *metric->n));
    }
}

bool is_decoding(const KernelTime& time) { return time.kernel != "metrics" && time.kernel != "prefill"; }

// tokens_per_second times an arm's decoding seconds and its share of the shared work is one number for all arms.
void check_speeds(const Workload& workload, std::size_t arms, const Place& place) {
  if (workload.kind != "perplexity" || workload.kernel_times.empty()) return;
  std::map<std::string, double> seconds;
  for (const KernelTime& time : workload.kernel_times)
    if (is_decoding(time)) seconds[time.arm] += time.seconds;
  const double share = seconds[""] / static_cast<double>(arms);
  std::optional<double> tokens;
  for (const auto& [arm, result] : workload.arms) {
    const Place here = place / "arms" / arm;
    (here / "seconds").expect_close(result.seconds, seconds[arm], "the sum of its kernel_times");
    if (result.tokens_per_second <= 0.0) continue;
    const double decoded = result.tokens_per_second * (seconds[arm] + share);
    if (tokens)
      (here / "tokens_per_second")
          .expect_close(result.tokens_per_second, *tokens / (seconds[arm] + share), "other arms' tokens over its time");
    tokens = tokens.value_or(decoded);
  }
}

// The A/A control. Bits do not depend on chance.
void check_twins(const Results& results, const Workload& workload, const Place& place) {
  const auto nameless = [&](const std::string& name) {
    const auto arm =
        std::find_if(results.arms.begin(), results.arms.end(), [&](const json& one) { return one.at("name") == name; });
    json copy = arm == results.arms.end() ? json() : *arm;
    if (copy.is_object()) copy.erase("name");
    return copy;
  };
  const json baseline = nameless(results.baseline);
  for (const auto& [arm, deltas] : workload.deltas) {
    if (nameless(arm) != baseline) continue;
    for (const auto& [name, delta] : deltas)
      if (delta.value != 0.0)
        (place / "deltas" / arm / name / "value")
            .fault(
                fmt::format("found {}, expected exactly 0: the arm is the baseline under another name", delta.value));
  }
}

void check_families(const Results& results, const Place& place) {
  for (std::size_t i = 0; i < results.task_families.size(); ++i) {
    const TaskFamily& family = results.task_families[i];
    const Place here = place / i;
    std::int64_t n = 0;
    double mean = 0.0;
    for (std::size_t t = 0; t < family.tasks.size(); ++t) {
      const TaskFamily::Member& task = family.tasks[t];
      n += task.n;
      mean += task.delta.value / static_cast<double>(family.tasks.size());
      check_interval(task.delta, here / "tasks" / t / "delta");
      for (const Workload& workload : results.workloads) {
        if (workload.name != task.workload || !workload.deltas.contains(family.arm)) continue;
        const Delta* own = find(workload.deltas.at(family.arm), family.metric);
        if (own != nullptr)
          (here / "tasks" / t / "delta" / "value").expect_close(task.delta.value, own->value, "the workload's own");
      }
    }
    if (n != family.n) (here / "n").fault(fmt::format("found {}, expected {}, the tasks' sum", family.n, n));
    (here / "by_question" / "value")
        .expect_close(family.by_question.value,
                      static_cast<double>(family.gained - family.lost) / static_cast<double>(family.n),
                      "gained minus lost over n");
    (here / "by_task" / "value").expect_close(family.by_task.value, mean, "the mean of the tasks' deltas");
    check_interval(family.by_question, here / "by_question");
    check_interval(family.by_task, here / "by_task");
  }
}

}  // namespace

void check_consistency(const Results& results, const std::string& place) {
  const Place root(place);
  for (std::size_t i = 0; i < results.workloads.size(); ++i) {
    const Workload& workload = results.workloads[i];
    const Place here = root / "workloads" / i;
    check_counts(workload, here);
    for (const auto& [arm, result] : workload.arms) check_metrics(result.metrics, here / "arms" / arm / "metrics");
    for (const auto& [arm, metrics] : workload.divergence) {
      check_metrics(metrics, here / "divergence" / arm);
      check_divergence(metrics, workload, here / "divergence" / arm);
    }
    check_deltas(workload, results.baseline, here / "deltas");
    check_stored(workload, here / "against");
    check_buckets(workload, results.baseline, here / "positions");
    check_cells(workload, results.baseline, here / "recall");
    check_answers(workload, here);
    check_speeds(workload, results.arms.size(), here);
    check_twins(results, workload, here);
  }
  check_families(results, root / "task_families");
}

std::string contradiction_in(const Results& results, const std::string& place) {
  try {
    check_consistency(results, place);
  } catch (const ResultsError& contradiction) {
    return contradiction.what();
  }
  return "";
}

}  // namespace replayeval::reports
