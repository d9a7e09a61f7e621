#include "reports/gate/measurement.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <functional>

#include "reports/gate/release.h"
#include "reports/gate/selection.h"
#include "reports/gate/vacuous.h"
#include "reports/metric_names.h"

namespace replayeval::reports::gate {
namespace {

std::string unit_in(const Workload& workload) {
  if (workload.kind == "perplexity") return "tokens";
  if (workload.kind == "recall") return "answers";
  return workload.kind == "generation" ? "sequences" : "documents";
}

Measurement fault(Measurement measured, std::string text) {
  measured.fault = std::move(text);
  return measured;
}

std::string without_end(const std::string& name, const std::string& end) {
  return name.ends_with(end) ? name.substr(0, name.size() - end.size()) : name;
}

// Deltas carry no count of their own: it is that of the arm's metric of the same name.
std::optional<std::int64_t> count_behind(const Workload& workload, const std::string& arm, const std::string& delta) {
  const auto found = workload.arms.find(arm);
  if (found == workload.arms.end()) return std::nullopt;
  const std::string plain = without_end(without_end(delta, "_t"), "_relative");
  const auto metric = found->second.metrics.find(plain);
  return metric == found->second.metrics.end() ? std::nullopt : metric->second.n;
}

// Files of earlier revisions said it in words alone: "paired t over 5 blocks of ~256 tokens".
std::optional<std::int64_t> units_of(const Delta& delta) {
  constexpr std::string_view over = " over ";
  const std::size_t found = delta.method.rfind(over);
  if (delta.units || found == std::string::npos) return delta.units;
  const char *begin = delta.method.data() + found + over.size(), *end = delta.method.data() + delta.method.size();
  std::int64_t units = 0;
  return std::from_chars(begin, end, units).ec == std::errc() ? std::optional(units) : std::nullopt;
}

bool is_of_shares(const Delta& delta) {
  if (!delta.interval_kind.empty()) return delta.interval_kind == "score";
  return delta.method.find("score interval") != std::string::npos;  // likewise
}

// Metrics do not say over how many units their interval is; the deltas of a text's tokens are over the same.
std::optional<std::int64_t> units_of_text(const Workload& workload) {
  if (workload.kind != "perplexity") return std::nullopt;
  for (const auto& [arm, deltas] : workload.deltas)
    if (const auto delta = deltas.find(names::delta_log_likelihood); delta != deltas.end())
      if (const auto units = units_of(delta->second)) return units;
  return std::nullopt;
}

void read_delta(const Delta& delta, Measurement& measured) {
  measured.value = delta.value;
  measured.method = delta.method;
  measured.units = units_of(delta);
  measured.of_shares = is_of_shares(delta);
  measured.confidence = delta.confidence;
  if (delta.low && delta.high) measured.interval = Interval{*delta.low, *delta.high};
}

void read_metric(const Metric& metric, const Results& results, const Workload& workload, Measurement& measured) {
  measured.value = metric.value;
  measured.n = metric.n;
  measured.units = units_of_text(workload);
  if (!metric.low || !metric.high) return;
  measured.interval = Interval{*metric.low, *metric.high};
  measured.confidence = results.config.value("confidence", 0.95);
}

template <typename Map>
const auto* entry_of(const Map& by_arm, const std::string& arm, const std::string& name) {
  const auto found = by_arm.find(arm);
  using Value = std::remove_reference_t<decltype(found->second.begin()->second)>;
  if (found == by_arm.end()) return static_cast<const Value*>(nullptr);
  const auto value = found->second.find(name);
  return value == found->second.end() ? nullptr : &value->second;
}

const ArmResult* result_of(const Workload& workload, const std::string& arm) {
  const auto found = workload.arms.find(arm);
  return found == workload.arms.end() ? nullptr : &found->second;
}

bool read_speed(const Rule& rule, const Results& results, const Workload& workload, Measurement& measured) {
  const ArmResult *own = result_of(workload, measured.arm), *baseline = result_of(workload, results.baseline);
  if (own == nullptr || own->tokens_per_second <= 0.0) return false;
  measured.value = own->tokens_per_second;
  if (rule.metric == "speed.over_baseline") {
    if (baseline == nullptr || baseline->tokens_per_second <= 0.0) return false;
    measured.value /= baseline->tokens_per_second;
  }
  return true;
}

bool read_count(const Rule& rule, const Workload& workload, Measurement& measured) {
  const std::string group = rule.group(), name = rule.pattern();
  bool found = false;
  if (group == "bytes") {
    const ArmResult* own = result_of(workload, measured.arm);
    const auto bytes = own == nullptr ? std::nullopt : name == "ring" ? own->ring_bytes : own->state_bytes;
    found = bytes.has_value();
    measured.value = static_cast<double>(bytes.value_or(0));
  }
  if (group == "state_error")
    for (const StateError& error : workload.state_errors) {
      if (error.arm != measured.arm || error.depth != name) continue;
      measured.value = std::max(measured.value, error.relative_frobenius);
      found = true;
    }
  if (group == "storage")
    for (const StorageCount& count : workload.storage_counts) {
      if (count.arm != measured.arm) continue;
      measured.value += static_cast<double>(name == "saturated" ? count.saturated : count.non_finite);
      found = true;
    }
  if (group == "churn")
    for (const ChurnCheck& check : workload.churn) {
      if (check.arm != measured.arm) continue;
      measured.value += check.holds() ? 0.0 : 1.0;
      found = true;
    }
  return found;
}

bool read_stored(const Rule& rule, const Results& results, const Workload& workload, const std::string& name,
                 Measurement& measured) {
  const auto row = std::find_if(workload.against.begin(), workload.against.end(),
                                [&](const StoredComparison& one) { return one.arm == measured.arm; });
  if (row == workload.against.end()) return false;
  if (!rule.stored_arm || !matches(*rule.stored_arm, row->stored_arm))
    measured.fault = why_not_the_stored_arm(results, workload, *row);
  if (rule.group() == "stored_delta") {
    const auto delta = row->deltas.find(name);
    if (delta == row->deltas.end()) return false;
    read_delta(delta->second, measured);
    measured.n = count_behind(workload, measured.arm, name);
    return true;
  }
  const auto metric = row->divergence.find(name);
  if (metric == row->divergence.end()) return false;
  read_metric(metric->second, results, workload, measured);
  return true;
}

// False where the arm has no such number.
bool read(const Rule& rule, const Results& results, const Workload& workload, const std::string& name,
          Measurement& measured) {
  const std::string group = rule.group();
  measured.unit = unit_in(workload);
  if (group == "delta") {
    const Delta* delta = entry_of(workload.deltas, measured.arm, name);
    if (delta == nullptr) return false;
    read_delta(*delta, measured);
    measured.n = count_behind(workload, measured.arm, name);
    return true;
  }
  if (group.starts_with("stored_")) return read_stored(rule, results, workload, name, measured);
  if (group == "divergence" || group == "arm") {
    const ArmResult* own = result_of(workload, measured.arm);
    const Metric* metric = nullptr;
    if (group == "divergence") {
      metric = entry_of(workload.divergence, measured.arm, name);
    } else if (own != nullptr) {
      const auto found = own->metrics.find(name);
      metric = found == own->metrics.end() ? nullptr : &found->second;
    }
    if (metric == nullptr) return false;
    read_metric(*metric, results, workload, measured);
    return true;
  }
  return group == "speed" ? read_speed(rule, results, workload, measured) : read_count(rule, workload, measured);
}

bool random_weights(const Rule& rule, const Results& results) {
  const std::string group = rule.group();
  return rule.compare == Compare::interval &&
         (group.ends_with("delta") || group.ends_with("divergence") || group == "arm") &&
         results.checkpoint.is_object() && results.checkpoint.value("weights", "") == "random";
}

Measurement measure_one(const Rule& rule, const NamedRun& run, const std::optional<NamedRun>& release,
                        const Workload& workload, const std::string& arm, const std::string& name) {
  Measurement measured;
  measured.workload = workload.name;
  measured.arm = arm;
  measured.metric = rule.group() + "." + name;
  if (random_weights(rule, run.results)) return fault(measured, "random weights: no quality can be read off");
  if (!read(rule, run.results, workload, name, measured))
    return fault(measured, fmt::format("the arm has no {} here: it failed or was not run", measured.metric));
  measured.doubt = why_it_cannot_fail(rule, workload, run.results.baseline, name);
  if (rule.against == Against::baseline) return measured;
  if (const std::string why = why_not_comparable(run, *release, workload.name, arm); !why.empty())
    return fault(measured, why);
  Measurement old = measured;
  old.value = 0.0;
  old.interval.reset();
  if (!read(rule, release->results, *workload_of(release->results, workload.name), name, old))
    return fault(measured, fmt::format("{}: the arm has no {} there", release->name, measured.metric));
  if (!old.fault.empty()) return fault(measured, fmt::format("{}: {}", release->name, old.fault));
  return change_since(rule, old, measured, run, *release);
}

std::vector<Measurement> measure_each(const Rule& rule, const NamedRun& run, const std::optional<NamedRun>& release,
                                      const Selection& selection) {
  std::vector<Measurement> all;
  for (const Workload* workload : selection.workloads) {
    const std::vector<std::string> names = metrics_in(rule, *workload);
    if (names.empty()) {
      Measurement measured;
      measured.workload = workload->name;
      measured.metric = rule.metric;
      all.push_back(fault(measured, no_such_metric(rule, *workload)));
    }
    for (const std::string& arm : selection.arms)
      for (const std::string& name : names) all.push_back(measure_one(rule, run, release, *workload, arm, name));
  }
  return all;
}

Measurement measure_family(const Rule& rule, const Results& results, const std::string& arm,
                           const std::vector<const Workload*>& workloads) {
  Measurement measured;
  measured.arm = arm;
  measured.metric = rule.metric;
  measured.unit = "documents";
  const auto family = std::find_if(results.task_families.begin(), results.task_families.end(),
                                   [&](const auto& one) { return one.arm == arm && one.metric == rule.pattern(); });
  if (family == results.task_families.end())
    return fault(measured, fmt::format("no two tasks have {} of this arm; expected two or more to pool", rule.metric));
  for (const TaskFamily::Member& task : family->tasks)
    if (std::none_of(workloads.begin(), workloads.end(), [&](const auto* one) { return one->name == task.workload; }))
      return fault(measured, fmt::format("the pooled tasks include '{}', which the rule's workloads do not match; "
                                         "results hold one pool of all tasks",
                                         task.workload));
  if (family->tasks.size() != workloads.size())
    return fault(measured, fmt::format("the pool has {} tasks, expected the {} that the rule matches",
                                       family->tasks.size(), workloads.size()));
  if (random_weights(rule, results)) return fault(measured, "random weights: no quality can be read off");
  read_delta(rule.pool == Pool::questions ? family->by_question : family->by_task, measured);
  measured.n = family->n;
  measured.doubt = why_no_value_is_outside(rule, rule.pattern());
  return measured;
}

// What the policy states of a speed stands in for the interval that a single run cannot give.
void add_uncertainty(const Rule& rule, Measurement& measured) {
  if (rule.group() != "speed" || !rule.uncertainty || !measured.fault.empty()) return;
  // A change is around 0, and what is uncertain is the ratio.
  const double shift = rule.against == Against::release ? 1.0 : 0.0;
  const double ratio = measured.value + shift, reach = *rule.uncertainty * ratio;
  measured.interval = Interval{measured.value - reach, measured.value + reach};
  measured.method = fmt::format("the policy's uncertainty of ±{:g} %", 100.0 * *rule.uncertainty);
  measured.confidence.reset();
  measured.n.reset();
}

}  // namespace

const Workload* workload_of(const Results& results, const std::string& name) {
  for (const Workload& workload : results.workloads)
    if (workload.name == name) return &workload;
  return nullptr;
}

std::vector<Measurement> measure(const Rule& rule, const NamedRun& run, const std::optional<NamedRun>& release) {
  if (const std::string why = rule.against == Against::release ? why_no_release(run, release) : ""; !why.empty()) {
    Measurement measured;
    measured.metric = rule.metric;
    return {fault(measured, why)};
  }
  const Selection selection = select(rule, run.results);
  std::vector<Measurement> all;
  for (const Fault& one : selection.faults) {
    Measurement measured;
    measured.workload = one.workload;
    measured.arm = one.arm;
    measured.metric = rule.metric;
    all.push_back(fault(measured, one.text));
  }
  if (rule.pool == Pool::each) {
    const std::vector<Measurement> found = measure_each(rule, run, release, selection);
    all.insert(all.end(), found.begin(), found.end());
  } else if (!selection.workloads.empty()) {
    for (const std::string& arm : selection.arms)
      all.push_back(measure_family(rule, run.results, arm, selection.workloads));
  }
  for (Measurement& measured : all) add_uncertainty(rule, measured);
  return all;
}

}  // namespace replayeval::reports::gate
