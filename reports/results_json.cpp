// Results to and from JSON, field by field.
#include <fmt/format.h>

#include <cmath>
#include <set>

#include "reports/results_io.h"

namespace replayeval::reports {
namespace {

using nlohmann::json;

// ---- to JSON

void put(json& object, const char* key, const std::optional<double>& value) {
  if (value) object[key] = *value;
}

json write(const Metric& metric) {
  json object = {{"value", metric.value}};
  put(object, "low", metric.low);
  put(object, "high", metric.high);
  if (metric.n) object["n"] = *metric.n;
  return object;
}

json write(const Delta& delta) {
  json object = {{"value", delta.value}, {"method", delta.method}};
  put(object, "low", delta.low);
  put(object, "high", delta.high);
  put(object, "p_value", delta.p_value);
  put(object, "confidence", delta.confidence);
  if (delta.units) object["units"] = *delta.units;
  if (!delta.interval_kind.empty()) object["interval_kind"] = delta.interval_kind;
  return object;
}

template <typename Value>
json write(const std::map<std::string, Value>& map);
template <typename Value>
json write(const std::vector<Value>& values);

json write(const ArmResult& arm) {
  json object = {
      {"metrics", write(arm.metrics)}, {"seconds", arm.seconds}, {"tokens_per_second", arm.tokens_per_second}};
  if (arm.state_bytes) object["state_bytes"] = *arm.state_bytes;
  if (arm.ring_bytes) object["ring_bytes"] = *arm.ring_bytes;
  return object;
}

json write(const PositionBucket& bucket) {
  return {{"begin", bucket.begin},
          {"end", bucket.end},
          {"n", bucket.n},
          {"perplexity", write(bucket.perplexity)},
          {"delta", write(bucket.delta)}};
}

json write(const StateError& error) {
  return {{"arm", error.arm},
          {"depth", error.depth},
          {"layer", error.layer},
          {"position", error.position},
          {"relative_frobenius", error.relative_frobenius},
          {"max_abs", error.max_abs},
          {"cosine", error.cosine},
          {"output_relative_error", error.output_relative_error},
          {"head_relative_frobenius", error.head_relative_frobenius}};
}

json write(const RecallCell& cell) {
  json object = {{"task", cell.task},
                 {"kind", cell.kind},
                 {"length", cell.length},
                 {"documents", cell.documents},
                 {"chance", cell.chance},
                 {"signal", cell.signal},
                 {"accuracy", write(cell.accuracy)},
                 {"delta", write(cell.delta)}};
  if (cell.depth) object["depth"] = *cell.depth;
  return object;
}

json write(const AgreementStep& row) { return {{"arm", row.arm}, {"step", row.step}, {"same", row.same}}; }

json write(const Equivalence& tested) {
  return {{"margin", tested.margin}, {"p_value", tested.p_value}, {"equivalent", tested.equivalent},
          {"low", tested.low},       {"high", tested.high},       {"confidence", tested.confidence}};
}

json write(const TaskFamily::Member& task) {
  return {{"workload", task.workload},
          {"n", task.n},
          {"delta", write(task.delta)},
          {"adjusted_p_value", task.adjusted_p_value}};
}

json write(const TaskFamily& family) {
  json object = {{"metric", family.metric},
                 {"arm", family.arm},
                 {"tasks", write(family.tasks)},
                 {"n", family.n},
                 {"gained", family.gained},
                 {"lost", family.lost},
                 {"by_question", write(family.by_question)},
                 {"by_task", write(family.by_task)}};
  put(object, "detectable", family.detectable);
  if (family.equivalence) object["equivalence"] = write(*family.equivalence);
  if (family.documents_to_detect_margin) object["documents_to_detect_margin"] = *family.documents_to_detect_margin;
  if (family.documents_to_show_equivalence)
    object["documents_to_show_equivalence"] = *family.documents_to_show_equivalence;
  return object;
}

json write(const ChurnCheck& check) {
  json object = {{"level", check.level},
                 {"event", check.event},
                 {"arm", check.arm},
                 {"batch", check.batch},
                 {"compared", check.compared},
                 {"differing", check.differing},
                 {"bit_identical", check.differing == 0},
                 {"max_deviation", check.max_deviation},
                 {"holds", check.holds()}};
  if (check.bound) {
    object["bound"] = *check.bound;
    object["bound_from"] = check.bound_from;
    if (check.measured) object["measured"] = *check.measured;
  }
  return object;
}

json write(const StoredComparison& row) {
  return {{"arm", row.arm},
          {"stored_arm", row.stored_arm},
          {"deltas", write(row.deltas)},
          {"divergence", write(row.divergence)}};
}

json write(const StorageCount& count) {
  return {{"arm", count.arm},
          {"layer", count.layer},
          {"saturated", count.saturated},
          {"subnormal", count.subnormal},
          {"non_finite", count.non_finite}};
}

json write(const KernelTime& time) {
  return {{"arm", time.arm}, {"kernel", time.kernel}, {"calls", time.calls}, {"seconds", time.seconds}};
}

json write(const Workload& workload) {
  json object = {{"name", workload.name},
                 {"kind", workload.kind},
                 {"data", workload.data},
                 {"arms", write(workload.arms)},
                 {"deltas", write(workload.deltas)},
                 {"divergence", write(workload.divergence)},
                 {"positions", write(workload.positions)},
                 {"state_errors", write(workload.state_errors)},
                 {"storage_counts", write(workload.storage_counts)},
                 {"kernel_times", write(workload.kernel_times)},
                 {"seconds", workload.seconds}};
  if (!workload.recall.empty()) object["recall"] = write(workload.recall);
  if (!workload.agreement.empty()) object["agreement"] = write(workload.agreement);
  if (!workload.churn.empty()) object["churn"] = write(workload.churn);
  if (!workload.against.empty()) object["against"] = write(workload.against);
  return object;
}

template <typename Value>
json write(const std::map<std::string, Value>& map) {
  json object = json::object();
  for (const auto& [key, value] : map) object[key] = write(value);
  return object;
}

template <typename Value>
json write(const std::vector<Value>& values) {
  json array = json::array();
  for (const Value& value : values) array.push_back(write(value));
  return array;
}

// ---- from JSON that the schema has accepted

void read(const json& from, bool& to) { to = from.get<bool>(); }
void read(const json& from, double& to) { to = from.get<double>(); }
void read(const json& from, std::int64_t& to) { to = from.get<std::int64_t>(); }
void read(const json& from, std::string& to) { to = from.get<std::string>(); }
void read(const json& from, Metric& to);
void read(const json& from, Delta& to);
void read(const json& from, ArmResult& to);
void read(const json& from, PositionBucket& to);
void read(const json& from, StateError& to);
void read(const json& from, RecallCell& to);
void read(const json& from, AgreementStep& to);
void read(const json& from, ChurnCheck& to);
void read(const json& from, StoredComparison& to);
void read(const json& from, StorageCount& to);
void read(const json& from, KernelTime& to);
void read(const json& from, Workload& to);
void read(const json& from, Equivalence& to);
void read(const json& from, TaskFamily::Member& to);
void read(const json& from, TaskFamily& to);

template <typename Value>
void read(const json& from, std::map<std::string, Value>& to) {
  for (const auto& [key, value] : from.items()) read(value, to[key]);
}

template <typename Value>
void read(const json& from, std::vector<Value>& to) {
  for (const json& value : from) read(value, to.emplace_back());
}

template <typename Value>
void get(const json& object, const char* key, Value& to) {
  read(object.at(key), to);
}

template <typename Value>
void get(const json& object, const char* key, std::optional<Value>& to) {
  if (object.contains(key)) read(object.at(key), to.emplace());
}

void read(const json& from, Metric& to) {
  get(from, "value", to.value);
  get(from, "low", to.low);
  get(from, "high", to.high);
  get(from, "n", to.n);
}

void read(const json& from, Delta& to) {
  get(from, "value", to.value);
  get(from, "low", to.low);
  get(from, "high", to.high);
  get(from, "p_value", to.p_value);
  get(from, "confidence", to.confidence);
  get(from, "method", to.method);
  get(from, "units", to.units);
  if (from.contains("interval_kind")) get(from, "interval_kind", to.interval_kind);
}

void read(const json& from, ArmResult& to) {
  get(from, "metrics", to.metrics);
  get(from, "seconds", to.seconds);
  get(from, "tokens_per_second", to.tokens_per_second);
  get(from, "state_bytes", to.state_bytes);
  get(from, "ring_bytes", to.ring_bytes);
}

void read(const json& from, PositionBucket& to) {
  get(from, "begin", to.begin);
  get(from, "end", to.end);
  get(from, "n", to.n);
  get(from, "perplexity", to.perplexity);
  get(from, "delta", to.delta);
}

void read(const json& from, StateError& to) {
  get(from, "arm", to.arm);
  get(from, "depth", to.depth);
  get(from, "layer", to.layer);
  get(from, "position", to.position);
  get(from, "relative_frobenius", to.relative_frobenius);
  get(from, "max_abs", to.max_abs);
  get(from, "cosine", to.cosine);
  get(from, "output_relative_error", to.output_relative_error);
  get(from, "head_relative_frobenius", to.head_relative_frobenius);
}

void read(const json& from, RecallCell& to) {
  get(from, "task", to.task);
  get(from, "kind", to.kind);
  get(from, "length", to.length);
  get(from, "depth", to.depth);
  get(from, "documents", to.documents);
  get(from, "chance", to.chance);
  get(from, "signal", to.signal);
  get(from, "accuracy", to.accuracy);
  get(from, "delta", to.delta);
}

void read(const json& from, AgreementStep& to) {
  get(from, "arm", to.arm);
  get(from, "step", to.step);
  get(from, "same", to.same);
}

void read(const json& from, ChurnCheck& to) {
  get(from, "level", to.level);
  get(from, "event", to.event);
  get(from, "arm", to.arm);
  get(from, "batch", to.batch);
  get(from, "compared", to.compared);
  get(from, "differing", to.differing);
  get(from, "max_deviation", to.max_deviation);
  get(from, "bound", to.bound);
  get(from, "measured", to.measured);
  if (from.contains("bound_from")) get(from, "bound_from", to.bound_from);
}

void read(const json& from, StoredComparison& to) {
  get(from, "arm", to.arm);
  get(from, "stored_arm", to.stored_arm);
  get(from, "deltas", to.deltas);
  get(from, "divergence", to.divergence);
}

void read(const json& from, StorageCount& to) {
  get(from, "arm", to.arm);
  get(from, "layer", to.layer);
  get(from, "saturated", to.saturated);
  get(from, "subnormal", to.subnormal);
  get(from, "non_finite", to.non_finite);
}

void read(const json& from, KernelTime& to) {
  get(from, "arm", to.arm);
  get(from, "kernel", to.kernel);
  get(from, "calls", to.calls);
  get(from, "seconds", to.seconds);
}

void read(const json& from, Workload& to) {
  get(from, "name", to.name);
  get(from, "kind", to.kind);
  to.data = from.at("data");
  get(from, "arms", to.arms);
  get(from, "deltas", to.deltas);
  get(from, "divergence", to.divergence);
  get(from, "positions", to.positions);
  get(from, "state_errors", to.state_errors);
  get(from, "storage_counts", to.storage_counts);
  get(from, "kernel_times", to.kernel_times);
  get(from, "seconds", to.seconds);
  if (from.contains("recall")) get(from, "recall", to.recall);
  if (from.contains("agreement")) get(from, "agreement", to.agreement);
  if (from.contains("churn")) get(from, "churn", to.churn);
  if (from.contains("against")) get(from, "against", to.against);
}

void read(const json& from, Equivalence& to) {
  get(from, "margin", to.margin);
  get(from, "p_value", to.p_value);
  get(from, "equivalent", to.equivalent);
  get(from, "low", to.low);
  get(from, "high", to.high);
  get(from, "confidence", to.confidence);
}

void read(const json& from, TaskFamily::Member& to) {
  get(from, "workload", to.workload);
  get(from, "n", to.n);
  get(from, "delta", to.delta);
  get(from, "adjusted_p_value", to.adjusted_p_value);
}

void read(const json& from, TaskFamily& to) {
  get(from, "metric", to.metric);
  get(from, "arm", to.arm);
  get(from, "tasks", to.tasks);
  get(from, "n", to.n);
  get(from, "gained", to.gained);
  get(from, "lost", to.lost);
  get(from, "by_question", to.by_question);
  get(from, "by_task", to.by_task);
  get(from, "detectable", to.detectable);
  get(from, "equivalence", to.equivalence);
  get(from, "documents_to_detect_margin", to.documents_to_detect_margin);
  get(from, "documents_to_show_equivalence", to.documents_to_show_equivalence);
}

// ---- what a schema cannot say

// JSON has no spelling for NaN and infinity, and the library would write null: so this runs before anything is spelt.
void check_finite(const json& node, const std::string& pointer) {
  if (node.is_number_float() && !std::isfinite(node.get<double>())) {
    throw ResultsError(fmt::format("results: {}: is {}; expected a finite number", pointer, node.get<double>()));
  }
  if (!node.is_structured()) return;
  for (const auto& [key, value] : node.items()) check_finite(value, fmt::format("{}/{}", pointer, key));
}

void check_version(const json& results, const std::string& place) {
  if (!results.is_object() || !results.contains("schema_version")) {
    throw ResultsError(fmt::format("{}: /schema_version: is missing; expected {}", place, schema_version));
  }
  if (results["schema_version"] != schema_version) {
    const json tool = results.value("tool", json::object());
    const std::string writer = tool.is_object() && tool.contains("version") && tool["version"].is_string()
                                   ? fmt::format(" ({}, which wrote them)", tool["version"].get<std::string>())
                                   : std::string();
    throw ResultsError(
        fmt::format("{}: /schema_version: found {}, this program reads {}; run again, or read them with that version{}",
                    place, results["schema_version"].dump(), schema_version, writer));
  }
}

class NameCheck {
 public:
  NameCheck(const json& results, std::string place) : place_(std::move(place)) {
    std::size_t index = 0;
    for (const json& arm : results.at("arms")) {
      const std::string pointer = fmt::format("/arms/{}", index++);
      if (!arms_.insert(arm.at("name").get<std::string>()).second) {
        fault(pointer + "/name", fmt::format("found {} again, expected another name for each arm", arm["name"].dump()));
      }
      const bool replay = arm.at("executor") == "replay";
      if (replay != arm.contains("ring_form")) {
        fault(pointer, replay ? "key \"ring_form\" is missing, which a replay arm needs"
                              : "has \"ring_form\", which an exact arm does not have");
      }
    }
  }

  void known(const std::string& arm, const std::string& pointer) const {
    if (!arms_.contains(arm)) fault(pointer, fmt::format("names the arm \"{}\", expected one of those in /arms", arm));
  }

  void known_keys(const json& object, const std::string& pointer) const {
    for (const auto& [arm, unused] : object.items()) known(arm, fmt::format("{}/{}", pointer, arm));
  }

  [[noreturn]] void fault(const std::string& pointer, const std::string& what) const {
    throw ResultsError(fmt::format("{}: {}: {}", place_, pointer, what));
  }

 private:
  std::string place_;
  std::set<std::string> arms_;
};

void check_names(const json& results, const std::string& place) {
  const NameCheck check(results, place);
  check.known(results.at("baseline"), "/baseline");
  std::set<std::string> workloads;
  std::size_t index = 0;
  for (const json& workload : results.at("workloads")) {
    const std::string pointer = fmt::format("/workloads/{}", index++);
    if (!workloads.insert(workload.at("name").get<std::string>()).second) {
      check.fault(pointer + "/name",
                  fmt::format("found {} again, expected another name for each workload", workload["name"].dump()));
    }
    for (const char* key : {"arms", "deltas", "divergence"})
      check.known_keys(workload.at(key), fmt::format("{}/{}", pointer, key));
    std::size_t cell = 0;
    for (const json& entry : workload.value("recall", json::array())) {
      for (const char* key : {"accuracy", "delta"})
        check.known_keys(entry.at(key), fmt::format("{}/recall/{}/{}", pointer, cell, key));
      ++cell;
    }
    for (const char* key : {"state_errors", "agreement", "storage_counts", "kernel_times", "churn", "against"}) {
      std::size_t row = 0;
      for (const json& entry : workload.value(key, json::array())) {
        const std::string arm = entry.at("arm");
        const bool shared = arm.empty() && std::string_view(key) == "kernel_times";
        if (!shared) check.known(arm, fmt::format("{}/{}/{}/arm", pointer, key, row));
        ++row;
      }
    }
  }
  std::size_t family = 0;
  for (const json& entry : results.value("task_families", json::array())) {
    const std::string pointer = fmt::format("/task_families/{}", family++);
    check.known(entry.at("arm"), pointer + "/arm");
    for (std::size_t task = 0; task < entry.at("tasks").size(); ++task) {
      const std::string workload = entry["tasks"][task].at("workload");
      if (!workloads.contains(workload))
        check.fault(fmt::format("{}/tasks/{}/workload", pointer, task),
                    fmt::format("names the workload \"{}\", expected one of those in /workloads", workload));
    }
  }
}

}  // namespace

json to_json(const Results& results) {
  json object = {{"schema_version", schema_version},
                 {"tool", results.tool},
                 {"environment", results.environment},
                 {"config", results.config},
                 {"checkpoint", results.checkpoint},
                 {"numerics", results.numerics},
                 {"arms", results.arms},
                 {"baseline", results.baseline},
                 {"workloads", write(results.workloads)}};
  if (!results.task_families.empty()) object["task_families"] = write(results.task_families);
  check_finite(object, "");
  validate_results(object);
  check_names(object, "results");
  return object;
}

Results results_from_json(const json& object, const std::string& place) {
  check_version(object, place);
  validate_results(object, place);
  check_names(object, place);
  Results results;
  results.tool = object.at("tool");
  results.environment = object.at("environment");
  results.config = object.at("config");
  results.checkpoint = object.at("checkpoint");
  results.numerics = object.at("numerics");
  for (const auto& arm : object.at("arms")) results.arms.push_back(arm);
  get(object, "baseline", results.baseline);
  get(object, "workloads", results.workloads);
  if (object.contains("task_families")) get(object, "task_families", results.task_families);
  return results;
}

}  // namespace replayeval::reports
