#include "datasets/tasks/task_settings.h"

#include <fmt/format.h>

#include <array>

#include "datasets/sha256.h"
#include "datasets/tasks/json_member.h"

namespace replayeval::tasks {
namespace {

constexpr std::array<std::string_view, 4> type_names = {"loglikelihood", "loglikelihood_rolling", "multiple_choice",
                                                        "generate_until"};
constexpr std::int64_t max_repeats = 1'000'000;

const OrderedJson& list_of(const OrderedJson& value, const std::string& place, std::string_view expected) {
  if (!value.is_array()) refuse(value, place, expected);
  return value;
}

OrderedJson without(const OrderedJson& object, std::initializer_list<const char*> keys) {
  OrderedJson rest = object;
  for (const char* key : keys) rest.erase(key);
  return rest;
}

FilterSpec parse_filter(const OrderedJson& value, const std::string& place) {
  FilterSpec filter;
  filter.name = as_name(member(value, "name", place), place + ".name");
  const OrderedJson& steps = list_of(member(value, "filter", place), place + ".filter", "a list of {function: NAME}");
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const std::string at = fmt::format("{}.filter[{}]", place, i);
    filter.steps.push_back({string_member(steps[i], "function", at), without(steps[i], {"function"})});
  }
  return filter;
}

MetricSpec parse_metric(const OrderedJson& value, const std::string& place) {
  if (value.is_string()) return {as_name(value, place), OrderedJson::object()};
  MetricSpec metric{as_name(member(value, "metric", place), place + ".metric"),
                    without(value, {"metric", "aggregation", "higher_is_better", "hf_evaluate"})};
  if (const OrderedJson* aggregation = find_member(value, "aggregation", place))
    metric.aggregation = as_string(*aggregation, place + ".aggregation");
  return metric;
}

}  // namespace

std::string_view name_of(RequestType type) { return type_names.at(static_cast<std::size_t>(type)); }

std::optional<RequestType> request_type_of(std::string_view name) {
  for (std::size_t i = 0; i < type_names.size(); ++i)
    if (type_names[i] == name) return static_cast<RequestType>(i);
  return std::nullopt;
}

std::vector<FilterSpec> parse_filters(const OrderedJson& list, const std::string& place) {
  list_of(list, place, "a list of {name, filter}");
  std::vector<FilterSpec> filters;
  for (std::size_t i = 0; i < list.size(); ++i) {
    filters.push_back(parse_filter(list[i], fmt::format("{}[{}]", place, i)));
    for (std::size_t before = 0; before < i; ++before)
      if (filters[before].name == filters[i].name)
        throw datasets::DataError(
            fmt::format("{}[{}]: a second filter '{}'; expected one of each name", place, i, filters[i].name));
  }
  return filters;
}

std::vector<MetricSpec> parse_metrics(const OrderedJson& list, const std::string& place) {
  list_of(list, place, "a list of metrics");
  std::vector<MetricSpec> metrics;
  for (std::size_t i = 0; i < list.size(); ++i) {
    metrics.push_back(parse_metric(list[i], fmt::format("{}[{}]", place, i)));
    for (std::size_t before = 0; before < i; ++before)
      if (metrics[before].name == metrics[i].name)
        throw datasets::DataError(
            fmt::format("{}[{}]: a second metric '{}'; expected one of each name", place, i, metrics[i].name));
  }
  return metrics;
}

std::vector<MetricSpec> default_metrics(RequestType type) {
  std::vector<std::string> names;
  switch (type) {
    case RequestType::loglikelihood:
      names = {"perplexity", "acc"};
      break;
    case RequestType::loglikelihood_rolling:
      names = {"word_perplexity", "byte_perplexity", "bits_per_byte"};
      break;
    case RequestType::multiple_choice:
      names = {"acc", "acc_norm"};
      break;
    case RequestType::generate_until:
      names = {"exact_match"};
      break;
  }
  std::vector<MetricSpec> metrics;
  for (std::string& name : names) metrics.push_back({std::move(name), OrderedJson::object()});
  return metrics;
}

TaskSettings settings_of_config(const OrderedJson& config, const std::string& place) {
  TaskSettings settings;
  const auto at = [&](const char* key) { return place + "." + key; };
  if (const OrderedJson* task = find_member(config, "task", place)) settings.task = as_string(*task, at("task"));
  if (const OrderedJson* type = find_member(config, "output_type", place)) {
    settings.type = request_type_of(as_string(*type, at("output_type")));
    if (!settings.type) refuse(*type, at("output_type"), request_type_names);
  }
  if (const OrderedJson* metrics = find_member(config, "metric_list", place))
    settings.metrics = parse_metrics(*metrics, at("metric_list"));
  if (const OrderedJson* filters = find_member(config, "filter_list", place))
    settings.filters = parse_filters(*filters, at("filter_list"));
  if (const OrderedJson* repeats = find_member(config, "repeats", place))
    settings.repeats = as_integer(*repeats, at("repeats"), 1, max_repeats);
  if (const OrderedJson* delimiter = find_member(config, "target_delimiter", place))
    settings.target_delimiter = as_string(*delimiter, at("target_delimiter"));
  if (const OrderedJson* delimiter = find_member(config, "fewshot_delimiter", place))
    settings.fewshot_delimiter = as_string(*delimiter, at("fewshot_delimiter"));
  if (const OrderedJson* choices = find_member(config, "doc_to_choice", place)) settings.doc_to_choice = *choices;
  if (const OrderedJson* target = find_member(config, "doc_to_target", place)) settings.doc_to_target = *target;
  settings.own_code = find_member(config, "process_results", place) != nullptr;
  return settings;
}

std::string fingerprint(const TaskSettings& settings) {
  OrderedJson metrics = OrderedJson::array(), filters = OrderedJson::array();
  for (const MetricSpec& metric : settings.metrics)
    metrics.push_back({metric.name, metric.options, metric.aggregation});
  for (const FilterSpec& filter : settings.filters) {
    OrderedJson steps = OrderedJson::array();
    for (const FilterStep& step : filter.steps) steps.push_back({step.function, step.options});
    filters.push_back({filter.name, std::move(steps)});
  }
  const OrderedJson all = {settings.type ? name_of(*settings.type) : "",
                           metrics,
                           filters,
                           settings.repeats,
                           settings.target_delimiter,
                           settings.fewshot_delimiter,
                           settings.doc_to_choice,
                           settings.doc_to_target,
                           settings.gold_key,
                           settings.gold_base};
  return datasets::sha256_hex(all.dump());
}

}  // namespace replayeval::tasks
