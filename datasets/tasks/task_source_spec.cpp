#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "datasets/json_node.h"
#include "datasets/plain_name.h"
#include "datasets/tasks/json_member.h"
#include "datasets/tasks/task_source.h"

namespace replayeval::tasks {
namespace {

using datasets::JsonNode;

constexpr std::int64_t unlimited = std::int64_t{1} << 53;
constexpr std::array<std::string_view, 12> keys = {"path",    "name",          "results",          "type",
                                                   "metrics", "filters",       "gold_key",         "gold_base",
                                                   "repeats", "max_documents", "target_delimiter", "sha256"};

// "metrics" and "filters" are checked where they are used, in the words of this place.
OrderedJson ordered(const JsonNode& node) { return OrderedJson::parse(node.value().dump()); }

}  // namespace

TaskSourceSpec parse_task_source(const nlohmann::json& object, const std::string& place) {
  TaskSourceSpec spec;
  if (object.is_string()) {
    spec.path = object.get<std::string>();
    return spec;
  }
  const JsonNode node(object, place);
  node.require_object();
  for (const auto& item : object.items())
    if (std::find(keys.begin(), keys.end(), item.key()) == keys.end())
      throw datasets::DataError(
          fmt::format("{}: '{}' is no key of a task; expected one of {}", place, item.key(), fmt::join(keys, ", ")));
  spec.path = node.at("path").string();
  if (const auto name = node.find("name")) {
    spec.name = name->string();
    if (!datasets::is_plain_name(spec.name)) name->refuse(datasets::plain_name_rule);
  }
  spec.results = node.string_or("results", "");
  spec.gold_key = node.string_or("gold_key", "");
  spec.sha256 = node.string_or("sha256", "");
  if (const auto type = node.find("type")) {
    spec.type = request_type_of(type->string());
    if (!spec.type) type->refuse(request_type_names);
  }
  if (const auto metrics = node.find("metrics"))
    if (parse_metrics(spec.metrics = ordered(*metrics), metrics->place()).empty())
      refuse(spec.metrics, metrics->place(), "at least one metric, or no such key");
  if (const auto filters = node.find("filters")) parse_filters(spec.filters = ordered(*filters), filters->place());
  if (const auto delimiter = node.find("target_delimiter")) spec.target_delimiter = delimiter->string();
  if (const auto base = node.find("gold_base")) {
    spec.gold_base = base->integer(0, 1);
    if (spec.gold_key.empty())
      throw datasets::DataError(base->place() + ": means nothing without gold_key; expected both");
  }
  if (const auto repeats = node.find("repeats")) spec.repeats = repeats->integer(1, 1'000'000);
  if (const auto limit = node.find("max_documents")) spec.max_documents = limit->integer(1, unlimited);
  return spec;
}

nlohmann::json to_json(const TaskSourceSpec& spec) {
  nlohmann::json object = {{"path", spec.path}};
  const auto put = [&](const char* key, const std::string& value) {
    if (!value.empty()) object[key] = value;
  };
  put("name", spec.name);
  put("results", spec.results);
  put("gold_key", spec.gold_key);
  put("sha256", spec.sha256);
  if (spec.type) object["type"] = name_of(*spec.type);
  if (!spec.metrics.is_null()) object["metrics"] = nlohmann::json::parse(spec.metrics.dump());
  if (!spec.filters.is_null()) object["filters"] = nlohmann::json::parse(spec.filters.dump());
  if (spec.target_delimiter) object["target_delimiter"] = *spec.target_delimiter;
  if (spec.gold_base != 0) object["gold_base"] = spec.gold_base;
  if (spec.repeats != 0) object["repeats"] = spec.repeats;
  if (spec.max_documents != 0) object["max_documents"] = spec.max_documents;
  return object;
}

}  // namespace replayeval::tasks
