#include "reports/gate/release.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

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

const Workload* workload_of(const Results& results, const std::string& name) {
  const auto found = std::find_if(results.workloads.begin(), results.workloads.end(),
                                  [&](const Workload& workload) { return workload.name == name; });
  return found == results.workloads.end() ? nullptr : &*found;
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

bool is_ratio(const Rule& rule) {
  return rule.group() == "speed" || rule.group() == "bytes" || rule.group() == "state_error";
}

}  // namespace

std::string why_not_comparable(const NamedRun& run, const NamedRun& release, const std::string& workload,
                               const std::string& arm) {
  const std::string both = run.name + " and " + release.name;
  if (run.results.checkpoint.at("sha256") != release.results.checkpoint.at("sha256"))
    return fmt::format("{}: different checkpoints: /checkpoint/sha256 differs", both);
  const Workload *now = workload_of(run.results, workload), *old = workload_of(release.results, workload);
  if (old == nullptr) return fmt::format("{}: has no workload '{}'", release.name, workload);
  if (const std::string where = first_difference(question_of(*old), question_of(*now)); !where.empty())
    return fmt::format("{}: different data: {} of workload '{}' differs", both, where, workload);
  const json* arm_old = arm_of(release.results.arms, arm);
  if (arm_old == nullptr) return fmt::format("{}: has no arm '{}'", release.name, arm);
  if (const std::string where = first_difference(*arm_old, *arm_of(run.results.arms, arm)); !where.empty())
    return fmt::format("{}: '{}' is not the same arm: {} differs", both, arm, where);
  if (const std::string what = numerics_that_differ(release.results.numerics, run.results.numerics); !what.empty())
    return fmt::format("{}: different numerics: {}", both, what);
  if (run.results.baseline != release.results.baseline)
    return fmt::format("{}: different baseline arms: '{}' and '{}'", both, run.results.baseline,
                       release.results.baseline);
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
  const double low = std::hypot(now.value - now.interval->low, old.interval->high - old.value);
  const double high = std::hypot(now.interval->high - now.value, old.value - old.interval->low);
  change.interval = Interval{change.value - low, change.value + high};
  if (old.units) change.units = std::min(*old.units, now.units.value_or(*old.units));
  if (old.confidence && now.confidence) change.confidence = std::min(*old.confidence, *now.confidence);
  change.method = "difference of the two runs (MOVER), each: " + now.method;
  return change;
}

}  // namespace replayeval::reports::gate
