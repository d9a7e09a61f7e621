#include "reports/gate/release.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "reports/metric_names.h"
#include "reports/summary.h"

namespace replayeval::reports::gate {
namespace {

using nlohmann::json;

// What of `data` makes the question; the rest describes how it was answered.
constexpr const char* keys_of_the_question[] = {"sources", "tasks",      "tokenizer",      "context",   "stride",
                                                "bos",     "prompt",     "prefill_tokens", "requests",  "prompts",
                                                "repeats", "max_tokens", "temperature",    "top_k",     "top_p",
                                                "stop",    "seed",       "tokens_scored",  "documents", "mode"};

// Where files lie does not matter, what is in them does.
json without_paths(json value) {
  if (value.is_object()) value.erase("path");
  if (value.is_structured())
    for (json& part : value) part = without_paths(part);
  return value;
}

json question_of(const Workload& workload) {
  json question = {{"kind", workload.kind}};
  for (const char* key : keys_of_the_question)
    if (workload.data.is_object() && workload.data.contains(key)) question[key] = without_paths(workload.data.at(key));
  return question;
}

std::string first_difference(const json& one, const json& other) {
  const json patch = json::diff(one, other);
  return patch.empty() ? "" : patch.at(0).at("path").get<std::string>();
}

// What both runs say of their rounding points: a program may say more than an older one did.
std::string numerics_that_differ(const json& old, const json& now) {
  std::vector<std::string> differences;
  if (!old.is_object() || !now.is_object()) return "";
  for (const auto& [name, value] : now.items())
    if (const auto before = old.find(name); before != old.end() && *before != value)
      differences.push_back(fmt::format("{} was {} and is {}", name, before->dump(), value.dump()));
  return fmt::format("{}", fmt::join(differences, ", "));
}

template <typename Arms>  // a list of arms, or a JSON array of them
const json* arm_of(const Arms& arms, const std::string& name) {
  const auto found = std::find_if(arms.begin(), arms.end(), [&](const json& arm) { return arm.at("name") == name; });
  return found == arms.end() ? nullptr : &*found;
}

std::string machine_of(const Results& results) {
  json machine = json::object();
  for (const char* key : {"cpu", "cores", "threads", "device", "gpu", "gpus"})
    if (results.environment.contains(key)) machine[key] = results.environment.at(key);
  return machine.dump();
}

bool same(const Metric& one, const Metric& other) {
  return one.value == other.value && one.low == other.low && one.high == other.high && one.n == other.n;
}

bool same(const Delta& one, const Delta& other) {
  return one.value == other.value && one.low == other.low && one.high == other.high && one.p_value == other.p_value;
}

template <typename Number>
bool same(const std::map<std::string, Number>& one, const std::map<std::string, Number>& other) {
  return std::equal(one.begin(), one.end(), other.begin(), other.end(), [](const auto& left, const auto& right) {
    return left.first == right.first && same(left.second, right.second);
  });
}

template <typename Number>
bool same_of_arm(const std::map<std::string, std::map<std::string, Number>>& one,
                 const std::map<std::string, std::map<std::string, Number>>& other, const std::string& arm) {
  const auto left = one.find(arm), right = other.find(arm);
  if (left == one.end() || right == other.end()) return left == one.end() && right == other.end();
  return same(left->second, right->second);
}

bool same_with_times(const Workload& one, const Workload& other) {
  const auto same_arm = [](const auto& left, const auto& right) {
    return left.first == right.first && left.second.seconds == right.second.seconds &&
           left.second.tokens_per_second == right.second.tokens_per_second &&
           same(left.second.metrics, right.second.metrics);
  };
  const auto same_numbers = [](const auto& left, const auto& right) {
    return left.first == right.first && same(left.second, right.second);
  };
  return one.name == other.name && one.seconds == other.seconds && one.data == other.data &&
         std::equal(one.arms.begin(), one.arms.end(), other.arms.begin(), other.arms.end(), same_arm) &&
         std::equal(one.deltas.begin(), one.deltas.end(), other.deltas.begin(), other.deltas.end(), same_numbers) &&
         std::equal(one.divergence.begin(), one.divergence.end(), other.divergence.begin(), other.divergence.end(),
                    same_numbers);
}

// Sums over so many rounded numbers that two texts or two sets of log-probabilities have the same by no accident.
// Shares are counts: two runs may be right as often on other questions.
bool has_a_fingerprint(const std::map<std::string, Metric>& metrics) {
  return std::any_of(metrics.begin(), metrics.end(), [](const auto& metric) {
    return metric.first == names::perplexity || metric.first == names::mean_log_likelihood ||
           metric.first == names::compression_ratio;
  });
}

// Whether arm and baseline arm hold the same metrics, deltas and divergences in both, to the bit, and these tell.
bool same_answers(const NamedRun& run, const NamedRun& release, const std::string& workload, const std::string& arm) {
  const Workload *now = workload_of(run.results, workload), *old = workload_of(release.results, workload);
  if (now == nullptr || old == nullptr) return false;
  for (const std::string& one : {arm, run.results.baseline}) {
    const auto new_arm = now->arms.find(one), old_arm = old->arms.find(one);
    if (new_arm == now->arms.end() || old_arm == old->arms.end() || !has_a_fingerprint(new_arm->second.metrics) ||
        !same(new_arm->second.metrics, old_arm->second.metrics))
      return false;
  }
  return same_of_arm(now->deltas, old->deltas, arm) && same_of_arm(now->divergence, old->divergence, arm);
}

bool is_ratio(const Rule& rule) {
  return rule.group() == "speed" || rule.group() == "bytes" || rule.group() == "state_error";
}

}  // namespace

std::string why_no_release(const NamedRun& run, const std::optional<NamedRun>& release) {
  if (!release) return "the rule is against a release; expected --baseline RESULT";
  const std::string both = run.name + " and " + release->name;
  const Results &now = run.results, &old = release->results;
  if (now.checkpoint.at("sha256") != old.checkpoint.at("sha256"))
    return fmt::format("{}: different checkpoints: {} and {}: /checkpoint/sha256 differs", both, checkpoint_name(now),
                       checkpoint_name(old));
  if (const std::string what = numerics_that_differ(old.numerics, now.numerics); !what.empty())
    return fmt::format("{}: different numerics: {}", both, what);
  if (now.baseline != old.baseline)
    return fmt::format("{}: different baseline arms: '{}' and '{}'", both, now.baseline, old.baseline);
  return "";
}

bool are_one_run(const Results& one, const Results& other) {
  if (!one.environment.is_object() || !one.environment.contains("date")) return false;
  return one.environment == other.environment && one.tool == other.tool && one.config == other.config &&
         one.checkpoint == other.checkpoint && one.numerics == other.numerics && one.baseline == other.baseline &&
         one.arms == other.arms &&
         std::equal(one.workloads.begin(), one.workloads.end(), other.workloads.begin(), other.workloads.end(),
                    same_with_times);
}

std::string why_not_comparable(const NamedRun& run, const NamedRun& release, const std::string& workload,
                               const std::string& arm) {
  const std::string both = run.name + " and " + release.name;
  const Workload *now = workload_of(run.results, workload), *old = workload_of(release.results, workload);
  if (old == nullptr) return fmt::format("{}: has no workload '{}'", release.name, workload);
  if (const std::string where = first_difference(question_of(*old), question_of(*now)); !where.empty())
    return fmt::format("{}: different data: {} of workload '{}' differs", both, where, workload);
  const json* arm_old = arm_of(release.results.arms, arm);
  if (arm_old == nullptr) return fmt::format("{}: has no arm '{}'", release.name, arm);
  if (const std::string where = first_difference(*arm_old, *arm_of(run.results.arms, arm)); !where.empty())
    return fmt::format("{}: '{}' is not the same arm: {} differs", both, arm, where);
  return "";
}

std::string why_not_the_stored_arm(const Results& results, const Workload& workload, const StoredComparison& row) {
  if (row.stored_arm != row.arm)
    return fmt::format(
        "the stored baseline keeps no arm '{}'; the run was compared with its '{}' (`stored_arm: {}` in "
        "the rule allows that)",
        row.arm, row.stored_arm, row.stored_arm);
  const json stored = workload.data.is_object() ? workload.data.value("against", json()) : json();
  const json arms = stored.is_object() ? stored.value("arms", json::array()) : json::array();
  const json *now = arm_of(results.arms, row.arm), *then = arm_of(arms, row.arm);
  if (now == nullptr || then == nullptr) return "";
  const std::string where = first_difference(*then, *now);
  return where.empty() ? ""
                       : fmt::format(
                             "the stored '{}' is not the same arm: {} differs (`stored_arm: {}` in the rule "
                             "allows that)",
                             row.arm, where, row.arm);
}

Measurement change_since(const Rule& rule, const Measurement& old, const Measurement& now, const NamedRun& run,
                         const NamedRun& release) {
  Measurement change = now;
  change.interval.reset();
  if (is_ratio(rule)) {
    if (old.value == 0.0 && now.value != 0.0) {
      change.fault = fmt::format("{}: {} is 0 there, which nothing can be a multiple of", release.name, now.metric);
      return change;
    }
    change.value = now.value == old.value ? 0.0 : now.value / old.value - 1.0;
    if (rule.metric == "speed.tokens_per_second" && machine_of(run.results) != machine_of(release.results))
      change.doubt =
          fmt::format("speeds of two machines: {} and {}", machine_of(run.results), machine_of(release.results));
    return change;
  }
  change.value = now.value - old.value;
  if (!old.interval || !now.interval) return change;
  if (old.units) change.units = std::min(*old.units, now.units.value_or(*old.units));
  if (old.confidence && now.confidence) change.confidence = std::min(*old.confidence, *now.confidence);
  if (change.value == 0.0 && !rule.group().starts_with("stored_") &&
      (release.is_the_run || same_answers(run, release, now.workload, now.arm))) {
    change.interval = Interval{0.0, 0.0};
    change.of_shares = false;
    change.method = "none is needed: both runs hold the same numbers, to the bit";
    return change;
  }
  const double low = std::hypot(now.value - now.interval->low, old.interval->high - old.value);
  const double high = std::hypot(now.interval->high - now.value, old.value - old.interval->low);
  change.interval = Interval{change.value - low, change.value + high};
  change.method = "difference of the two runs (MOVER), each: " + now.method;
  return change;
}

}  // namespace replayeval::reports::gate
