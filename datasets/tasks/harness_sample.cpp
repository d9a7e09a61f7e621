#include "datasets/tasks/harness_sample.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "datasets/tasks/generation_options.h"
#include "datasets/tasks/harness_checks.h"
#include "datasets/tasks/json_member.h"
#include "datasets/tasks/python_literal.h"
#include "datasets/tasks/python_text.h"
#include "datasets/tasks/right_choice.h"

namespace replayeval::tasks {
namespace {

struct Argument {
  const OrderedJson* values[2] = {nullptr, nullptr};
  std::string place;
};

// {"gen_args_0": {"arg_0": ..., "arg_1": ...}, ...}; before 0.4.3: [[..., ...], ...].
std::vector<Argument> arguments_of(const OrderedJson& row, const std::string& place) {
  const OrderedJson& arguments = member(row, "arguments", place);
  const std::string at = place + ": arguments";
  if (!arguments.is_structured() || arguments.empty())
    refuse(arguments, at, "an object of gen_args_0, gen_args_1, ...");
  std::vector<Argument> list(arguments.size());
  for (std::size_t i = 0; i < list.size(); ++i) {
    list[i].place = fmt::format("{}.gen_args_{}", at, i);
    const OrderedJson& one = arguments.is_array() ? arguments[i] : member(arguments, fmt::format("gen_args_{}", i), at);
    if (!one.is_structured()) refuse(one, list[i].place, "an object of arg_0 and arg_1");
    for (std::size_t j = 0; j < 2; ++j) {
      if (one.is_object())
        list[i].values[j] = find_member(one, fmt::format("arg_{}", j), list[i].place);
      else if (j < one.size())
        list[i].values[j] = &one[j];
    }
    if (list[i].values[0] == nullptr)
      throw datasets::DataError(list[i].place + ": 'arg_0' is missing or null; expected a text");
  }
  return list;
}

RequestType type_by_shape(const std::vector<Argument>& arguments) {
  const OrderedJson* second = arguments[0].values[1];
  if (second == nullptr) return RequestType::loglikelihood_rolling;
  if (second->is_object()) return RequestType::generate_until;
  return arguments.size() > 1 ? RequestType::multiple_choice : RequestType::loglikelihood;
}

void read_requests(const std::vector<Argument>& arguments, TaskDocument& document) {
  if (document.type != RequestType::multiple_choice && arguments.size() != 1)
    throw datasets::DataError(fmt::format("{}: a second request; expected one, as the task's type is {}",
                                          arguments[1].place, name_of(document.type)));
  for (const Argument& argument : arguments) {
    const std::string& first = as_string(*argument.values[0], argument.place + ".arg_0");
    if (document.type == RequestType::loglikelihood_rolling) {
      if (argument.values[1] != nullptr)
        refuse(*argument.values[1], argument.place + ".arg_1", "none in a loglikelihood_rolling request");
      document.requests.push_back({"", first});
      continue;
    }
    if (argument.values[1] == nullptr)
      throw datasets::DataError(fmt::format("{}: 'arg_1' is missing or null; expected one, as the task's type is {}",
                                            argument.place, name_of(document.type)));
    const std::string at = argument.place + ".arg_1";
    if (document.type == RequestType::generate_until) {
      document.requests.push_back({first, ""});
      document.generation = parse_generation(*argument.values[1], at);
    } else {
      document.requests.push_back({first, as_string(*argument.values[1], at)});
    }
  }
}

std::string optional_text(const OrderedJson& row, const char* key) {
  const auto found = row.find(key);
  return found != row.end() && found->is_string() ? found->get<std::string>() : std::string();
}

bool names_metric(const TaskSettings& settings, std::string_view name) {
  return std::any_of(settings.metrics.begin(), settings.metrics.end(),
                     [&](const MetricSpec& metric) { return metric.name == name; });
}

}  // namespace

bool is_harness_sample(const OrderedJson& row) {
  return row.is_object() && row.contains("arguments") && row.contains("doc_id");
}

TaskDocument HarnessSampleReader::read(const OrderedJson& row, std::int64_t line, const std::string& place) {
  TaskDocument document;
  document.line = line;
  document.id =
      as_integer(member(row, "doc_id", place), place + ": doc_id", 0, std::numeric_limits<std::int64_t>::max());
  const std::vector<Argument> arguments = arguments_of(row, place);
  if (!settings_.type) settings_.type = type_by_shape(arguments);
  if (settings_.metrics.empty()) {
    const OrderedJson* named = find_member(row, "metrics", place);
    settings_.metrics =
        named != nullptr ? parse_metrics(*named, place + ": metrics") : default_metrics(*settings_.type);
  }
  document.type = *settings_.type;
  document.doc = row.contains("doc") ? row.at("doc") : OrderedJson();
  document.arguments = row.at("arguments");
  document.target = row.contains("target") ? python_str(row.at("target")) : std::string();
  document.doc_hash = optional_text(row, "doc_hash");
  document.prompt_hash = optional_text(row, "prompt_hash");
  document.target_hash = optional_text(row, "target_hash");
  read_requests(arguments, document);
  if (document.type == RequestType::multiple_choice) read_multiple_choice(row, place, document);
  if (document.type == RequestType::generate_until) read_generation(row, place, document);
  if (document.type == RequestType::loglikelihood_rolling) {
    const std::string& text = document.requests[0].continuation;
    document.words = recorded_count(row, {"word_perplexity"}, word_count(text), place);
    document.bytes =
        recorded_count(row, {"byte_perplexity", "bits_per_byte"}, static_cast<std::int64_t>(text.size()), place);
  }
  return document;
}

void HarnessSampleReader::read_multiple_choice(const OrderedJson& row, const std::string& place,
                                               TaskDocument& document) const {
  std::vector<TextPair> conditional = document.requests;
  if (names_metric(settings_, "acc_mutual_info")) {
    check_unconditional(document.requests, settings_.target_delimiter, place);
    conditional.resize(conditional.size() / 2);
  }
  document.choices = choice_texts(conditional, settings_, document.doc);
  document.gold = right_choices(row, document, settings_, place);
}

void HarnessSampleReader::read_generation(const OrderedJson& row, const std::string& place, TaskDocument& document) {
  const OrderedJson* responses = find_member(row, "resps", place);
  const bool listed =
      responses != nullptr && responses->is_array() && !responses->empty() && (*responses)[0].is_array();
  document.repeats =
      listed && !(*responses)[0].empty() ? static_cast<std::int64_t>((*responses)[0].size()) : settings_.repeats;
  if (!settings_.doc_to_choice.is_null()) {
    const std::vector<std::string> choices = choices_of(settings_.doc_to_choice, document.doc);
    document.choices = choices;
    const std::vector<std::size_t> gold = right_choices(row, document, settings_, place);
    document.choices.clear();
    document.targets = {choices[gold[0]]};
    return;
  }
  const OrderedJson* value = nullptr;  // as the document has it, where the config names its member
  if (settings_.doc_to_target.is_string() && document.doc.is_object()) {
    const auto found = document.doc.find(settings_.doc_to_target.get<std::string>());
    if (found != document.doc.end()) value = &*found;
  }
  const auto list = value == nullptr    ? parse_python_list(document.target)
                    : value->is_array() ? std::optional(std::vector<OrderedJson>(value->begin(), value->end()))
                                        : std::nullopt;
  if (!several_targets_) several_targets_ = list.has_value();
  document.several_targets = *several_targets_;
  if (document.several_targets && list)
    for (const OrderedJson& element : *list) document.targets.push_back(python_str(element));
  else
    document.targets = {document.target};
}

}  // namespace replayeval::tasks
