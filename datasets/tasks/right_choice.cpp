#include "datasets/tasks/right_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>

#include "datasets/tasks/first_largest.h"
#include "datasets/tasks/json_member.h"
#include "datasets/tasks/python_literal.h"
#include "datasets/tasks/python_text.h"

namespace replayeval::tasks {
namespace {

std::optional<std::int64_t> number_in(std::string_view text) {
  if (text == "True") return 1;  // Python's booleans are numbers
  if (text == "False") return 0;
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(number) : std::nullopt;
}

void add_in_range(std::int64_t number, std::size_t count, std::vector<std::size_t>& gold) {
  if (number >= 0 && number < static_cast<std::int64_t>(count)) gold.push_back(static_cast<std::size_t>(number));
}

void add_text(const std::string& text, const std::vector<std::string>& choices, std::vector<std::size_t>& gold) {
  const auto found = std::find(choices.begin(), choices.end(), text);
  if (found != choices.end()) gold.push_back(static_cast<std::size_t>(found - choices.begin()));
}

// A number counts from `base`; the name of a choice does, too.
std::vector<std::size_t> gold_of_value(const OrderedJson& value, std::int64_t base, const TaskDocument& document) {
  std::vector<std::size_t> gold;
  const auto add = [&](const OrderedJson& element) {
    const std::string text = python_str(element);
    const auto number = element.is_number_integer() || element.is_boolean() ? number_in(text) : std::nullopt;
    if (number) {
      add_in_range(*number - base, document.choices.size(), gold);
    } else {
      add_text(text, document.choices, gold);
      if (gold.empty())
        if (const auto digits = number_in(text)) add_in_range(*digits - base, document.choices.size(), gold);
    }
  };
  if (value.is_array())
    for (const OrderedJson& element : value) add(element);
  else
    add(value);
  return gold;
}

// The member of the document that doc_to_target names; nullptr if it names none.
const OrderedJson* target_member(const TaskSettings& settings, const OrderedJson& doc) {
  if (!settings.doc_to_target.is_string() || !doc.is_object()) return nullptr;
  const auto found = doc.find(settings.doc_to_target.get<std::string>());
  return found == doc.end() ? nullptr : &*found;
}

// As a template's text: digits are a number, [..] a list.
std::vector<std::size_t> gold_of_text(const TaskDocument& document) {
  std::vector<std::size_t> gold;
  const std::size_t count = document.choices.size();
  if (const auto number = number_in(document.target)) {
    add_in_range(*number, count, gold);
    if (!gold.empty()) return gold;
  }
  if (const auto list = parse_python_list(document.target)) {
    for (const OrderedJson& element : *list)
      if (element.is_number_integer()) add_in_range(element.get<std::int64_t>(), count, gold);
    return gold;
  }
  add_text(document.target, document.choices, gold);
  return gold;
}

// Of [LOG-LIKELIHOOD, GREEDY], the first as a number or its text.
double log_likelihood_in(const OrderedJson& response, const std::string& place) {
  if (!response.is_array() || response.empty()) refuse(response, place, "[LOG-LIKELIHOOD, GREEDY]");
  double value = std::numeric_limits<double>::quiet_NaN();
  if (response[0].is_number()) value = response[0].get<double>();
  if (response[0].is_string()) {
    const auto& text = response[0].get_ref<const std::string&>();
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size()) value = std::numeric_limits<double>::quiet_NaN();
  }
  if (!std::isfinite(value)) refuse(response[0], place + "[0]", "a log-likelihood, a finite number");
  return value;
}

// By what the row says that the model chose, and whether it was right. Nothing where the row says neither, or not
// enough: of three or more a wrong choice leaves several.
std::vector<std::size_t> gold_of_record(const OrderedJson& row, std::size_t count, const std::string& place) {
  const OrderedJson *acc = find_member(row, "acc", place), *responses = find_member(row, "filtered_resps", place);
  if (acc == nullptr || responses == nullptr) return {};
  const double right = as_number(*acc, place + ": acc");
  if (right != 0 && right != 1) refuse(*acc, place + ": acc", "0 or 1");
  const std::string at = place + ": filtered_resps";
  if (!responses->is_array() || responses->size() < count)
    refuse(*responses, at, fmt::format("a list of [LOG-LIKELIHOOD, GREEDY], {} or more", count));
  std::vector<double> values;
  for (std::size_t i = 0; i < count; ++i)
    values.push_back(log_likelihood_in((*responses)[i], fmt::format("{}[{}]", at, i)));
  const std::size_t chosen = first_largest(values);
  if (right == 1) return {chosen};
  return count == 2 ? std::vector<std::size_t>{1 - chosen} : std::vector<std::size_t>{};
}

// The choices that `value` names; throws if it names none.
std::vector<std::size_t> gold_in(const OrderedJson& value, std::int64_t base, const TaskDocument& document,
                                 const std::string& place) {
  std::vector<std::size_t> gold = gold_of_value(value, base, document);
  if (gold.empty())
    refuse(value, place, fmt::format("one of the {} choices, or its number from {}", document.choices.size(), base));
  return gold;
}

bool fits(const std::vector<std::string>& choices, const std::vector<TextPair>& requests) {
  if (choices.size() != requests.size()) return false;
  const bool contexts = only_contexts_differ(requests);
  for (std::size_t i = 0; i < choices.size(); ++i) {
    const bool within = contexts ? requests[i].context.find(choices[i]) != std::string::npos
                                 : requests[i].continuation.ends_with(choices[i]);
    if (!within) return false;
  }
  return true;
}

std::size_t shared_prefix(const std::vector<TextPair>& requests) {
  std::size_t size = requests[0].context.size();
  for (const TextPair& request : requests) {
    const auto& first = requests[0].context;
    size = std::min(
        size, static_cast<std::size_t>(
                  std::mismatch(first.begin(), first.end(), request.context.begin(), request.context.end()).first -
                  first.begin()));
  }
  return size;
}

}  // namespace

std::vector<std::string> choices_of(const OrderedJson& doc_to_choice, const OrderedJson& doc) {
  const OrderedJson* list = &doc_to_choice;
  if (doc_to_choice.is_string()) {
    if (!doc.is_object()) return {};
    const auto found = doc.find(doc_to_choice.get<std::string>());
    if (found == doc.end()) return {};
    list = &*found;
  }
  std::vector<std::string> choices;
  if (list->is_structured())
    for (const OrderedJson& element : *list) {
      if (!element.is_string()) return {};
      choices.push_back(element.get<std::string>());
    }
  return choices;
}

bool only_contexts_differ(const std::vector<TextPair>& requests) {
  bool contexts_differ = false;
  for (const TextPair& request : requests) {
    if (request.continuation != requests[0].continuation) return false;
    contexts_differ = contexts_differ || request.context != requests[0].context;
  }
  return contexts_differ;
}

std::vector<std::string> choice_texts(const std::vector<TextPair>& requests, const TaskSettings& settings,
                                      const OrderedJson& doc) {
  std::vector<std::string> choices = choices_of(settings.doc_to_choice, doc);
  if (fits(choices, requests)) return choices;
  choices.clear();
  if (only_contexts_differ(requests)) {
    const std::string& first = requests[0].context;
    const std::string& delimiter = settings.fewshot_delimiter;
    const std::size_t at = delimiter.empty()
                               ? std::string::npos
                               : std::string_view(first).substr(0, shared_prefix(requests)).rfind(delimiter);
    const std::size_t from = at == std::string::npos ? 0 : at + delimiter.size();
    for (const TextPair& request : requests) choices.push_back(request.context.substr(from));
    return choices;
  }
  const std::string& delimiter = settings.target_delimiter;
  const bool delimited = std::all_of(requests.begin(), requests.end(), [&](const TextPair& request) {
    return request.continuation.starts_with(delimiter);
  });
  for (const TextPair& request : requests)
    choices.push_back(request.continuation.substr(delimited ? delimiter.size() : 0));
  return choices;
}

std::vector<std::size_t> right_choices(const OrderedJson& row, const TaskDocument& document,
                                       const TaskSettings& settings, const std::string& place) {
  if (!settings.gold_key.empty())
    return gold_in(member(document.doc, settings.gold_key, place + ": doc"), settings.gold_base, document,
                   place + ": doc." + settings.gold_key);
  std::vector<TextPair> conditional;
  if (document.type == RequestType::multiple_choice)
    conditional.assign(document.requests.begin(),
                       document.requests.begin() + static_cast<std::ptrdiff_t>(document.choices.size()));
  if (!conditional.empty() && only_contexts_differ(conditional)) {
    std::vector<std::size_t> gold = gold_of_record(row, document.choices.size(), place);
    if (gold.empty())
      throw datasets::DataError(place +
                                ": which of its contexts is right stands nowhere in the row; expected gold_key: MEMBER "
                                "(of doc) in the task's config");
    return gold;
  }
  if (const OrderedJson* value = target_member(settings, document.doc))
    return gold_in(*value, 0, document, place + ": doc." + settings.doc_to_target.get<std::string>());
  const OrderedJson& target = member(row, "target", place);
  std::vector<std::size_t> gold = gold_of_text(document);
  if (gold.empty())
    refuse(target, place + ": target",
           fmt::format("one of the {} choices, or its number from 0", document.choices.size()));
  return gold;
}

}  // namespace replayeval::tasks
