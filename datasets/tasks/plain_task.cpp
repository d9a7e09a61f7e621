#include "datasets/tasks/plain_task.h"

#include <fmt/format.h>

#include <algorithm>

#include "datasets/sha256.h"
#include "datasets/tasks/generation_options.h"
#include "datasets/tasks/json_member.h"
#include "datasets/tasks/python_literal.h"
#include "datasets/tasks/python_text.h"

namespace replayeval::tasks {
namespace {

RequestType type_of_members(const OrderedJson& row, const std::string& place) {
  const auto has = [&](const char* key) {
    const auto found = row.find(key);
    if (found != row.end() && found->is_null())
      refuse(*found, fmt::format("{}: {}", place, key), "a value, or no such key");
    return found != row.end();
  };
  if (has("choices")) return RequestType::multiple_choice;
  if (has("text")) return RequestType::loglikelihood_rolling;
  return has("until") || has("max_gen_toks") ? RequestType::generate_until : RequestType::loglikelihood;
}

// Rows of generations need not say how they end.
void check_type(RequestType by_members, RequestType type, const std::string& place) {
  if (by_members == type || (type == RequestType::generate_until && by_members == RequestType::loglikelihood)) return;
  throw datasets::DataError(
      fmt::format("{}: has the members of a {} row; expected those of {}, as the config or the first row has it", place,
                  name_of(by_members), name_of(type)));
}

const OrderedJson& answer_of(const OrderedJson& row, const std::string& place) {
  const OrderedJson *answer = find_member(row, "answer", place), *target = find_member(row, "target", place);
  if (answer == nullptr && target == nullptr)
    throw datasets::DataError(place + ": expected a member 'answer' or 'target'");
  if (answer != nullptr && target != nullptr)
    refuse(*target, place + ": target", "'answer' or 'target': the row has both");
  return answer != nullptr ? *answer : *target;
}

// Different texts: of one alone, or of equal ones, any answer would be right.
std::vector<std::string> different_choices(const OrderedJson& list, const std::string& place) {
  if (!list.is_array() || list.size() < 2) refuse(list, place + ": choices", "a list of two texts or more");
  std::vector<std::string> choices;
  for (std::size_t i = 0; i < list.size(); ++i) {
    const std::string at = fmt::format("{}: choices[{}]", place, i);
    const std::string& choice = as_string(list[i], at);
    if (choice.empty()) refuse(list[i], at, "a text that is not empty");
    if (const auto equal = std::find(choices.begin(), choices.end(), choice); equal != choices.end())
      refuse(list[i], at, fmt::format("another text than choices[{}]", equal - choices.begin()));
    choices.push_back(choice);
  }
  return choices;
}

// Other data sets call it so. What names a choice must name the right one.
void refuse_another_answer(const OrderedJson& row, const char* key, const TaskDocument& document,
                           const std::string& place) {
  const OrderedJson* other = find_member(row, key, place);
  if (other == nullptr) return;
  const auto is_other = [&](std::size_t choice) {
    return *other == OrderedJson(choice) || *other == OrderedJson(document.choices[choice]);
  };
  const auto right = [&](std::size_t choice) {
    return std::find(document.gold.begin(), document.gold.end(), choice) != document.gold.end();
  };
  bool named = false;
  for (std::size_t choice = 0; choice < document.choices.size(); ++choice) {
    if (is_other(choice) && right(choice)) return;
    named = named || is_other(choice);
  }
  if (named)
    refuse(*other, fmt::format("{}: {}", place, key), "the choice that 'answer' (or 'target') names, or no such key");
}

// {"gen_args_0": {"arg_0": ..., "arg_1": ...}, ...}, so that rows written from it read like the harness's.
OrderedJson arguments_of(const TaskDocument& document, const OrderedJson& generation) {
  OrderedJson arguments = OrderedJson::object();
  for (std::size_t i = 0; i < document.requests.size(); ++i) {
    const auto& [context, continuation] = document.requests[i];
    OrderedJson& one = arguments[fmt::format("gen_args_{}", i)];
    if (document.type == RequestType::loglikelihood_rolling) {
      one["arg_0"] = continuation;
    } else {
      one["arg_0"] = context;
      one["arg_1"] = document.type == RequestType::generate_until ? generation : OrderedJson(continuation);
    }
  }
  return arguments;
}

OrderedJson generation_members(const OrderedJson& row) {
  OrderedJson kwargs = OrderedJson::object();
  for (const char* key : {"until", "max_gen_toks", "do_sample", "temperature", "top_p", "top_k"})
    if (row.contains(key)) kwargs[key] = row.at(key);
  return kwargs;
}

}  // namespace

void add_hashes(TaskDocument& document) {
  const TextPair& first = document.requests.at(0);
  const bool rolling = document.type == RequestType::loglikelihood_rolling;
  document.doc_hash = datasets::sha256_hex(write_python_json(document.doc, 2));
  document.prompt_hash = datasets::sha256_hex(rolling ? first.continuation : first.context);
  document.target_hash = datasets::sha256_hex(document.target);
}

TaskDocument PlainTaskReader::read(const OrderedJson& row, std::int64_t number, std::int64_t line,
                                   const std::string& place) {
  if (!row.is_object()) refuse(row, place, "an object");
  const RequestType by_members = type_of_members(row, place);
  if (!settings_.type) settings_.type = by_members;
  check_type(by_members, *settings_.type, place);
  if (settings_.metrics.empty()) settings_.metrics = default_metrics(*settings_.type);
  TaskDocument document;
  document.id = number;
  document.line = line;
  document.type = *settings_.type;
  document.doc = row;
  switch (document.type) {
    case RequestType::multiple_choice:
      read_choices(row, place, document);
      break;
    case RequestType::generate_until:
      read_generation(row, place, document);
      break;
    case RequestType::loglikelihood:
      document.target = as_string(answer_of(row, place), place + ": target");
      document.requests.push_back({string_member(row, "context", place), document.target});
      break;
    case RequestType::loglikelihood_rolling:
      document.target = string_member(row, "text", place);
      document.requests.push_back({"", document.target});
      document.words = word_count(document.target);
      document.bytes = static_cast<std::int64_t>(document.target.size());
      break;
  }
  document.arguments = arguments_of(document, generation_members(row));
  add_hashes(document);
  return document;
}

void PlainTaskReader::read_choices(const OrderedJson& row, const std::string& place, TaskDocument& document) const {
  const OrderedJson& choices = member(row, "choices", place);
  const std::string& context = string_member(row, "context", place);
  document.choices = different_choices(choices, place);
  for (const std::string& choice : document.choices)
    document.requests.push_back({context, settings_.target_delimiter + choice});
  const bool mutual = std::any_of(settings_.metrics.begin(), settings_.metrics.end(),
                                  [](const MetricSpec& metric) { return metric.name == "acc_mutual_info"; });
  if (mutual)
    for (const std::string& choice : document.choices)
      document.requests.push_back({"", settings_.target_delimiter + choice});
  const OrderedJson& answer = answer_of(row, place);
  document.target = python_str(answer);
  const std::string at = place + ": answer";
  const auto last = static_cast<std::int64_t>(document.choices.size()) - 1;
  const auto add = [&](const OrderedJson& value) {
    if (!value.is_string()) {
      document.gold.push_back(static_cast<std::size_t>(as_integer(value, at, 0, last)));
      return;
    }
    const auto found = std::find(document.choices.begin(), document.choices.end(), value.get<std::string>());
    if (found == document.choices.end()) refuse(value, at, "one of the choices, or its number from 0");
    document.gold.push_back(static_cast<std::size_t>(found - document.choices.begin()));
  };
  if (answer.is_array())
    for (const OrderedJson& value : answer) add(value);
  else
    add(answer);
  if (document.gold.empty()) refuse(answer, at, "at least one right choice");
  for (const char* key : {"gold", "label"}) refuse_another_answer(row, key, document, place);
}

void PlainTaskReader::read_generation(const OrderedJson& row, const std::string& place, TaskDocument& document) const {
  document.requests.push_back({string_member(row, "context", place), ""});
  document.generation = parse_generation(generation_members(row), place);
  document.repeats = settings_.repeats;
  const OrderedJson& answer = answer_of(row, place);
  document.target = python_str(answer);
  document.several_targets = answer.is_array();
  if (!answer.is_array()) {
    document.targets = {document.target};
    return;
  }
  if (answer.empty()) refuse(answer, place + ": target", "at least one answer");
  for (const OrderedJson& value : answer) document.targets.push_back(python_str(value));
}

}  // namespace replayeval::tasks
