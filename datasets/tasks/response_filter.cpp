#include "datasets/tasks/response_filter.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "datasets/tasks/json_member.h"
#include "datasets/tasks/python_regex.h"
#include "datasets/tasks/python_text.h"

namespace replayeval::tasks {
namespace {

using Step = std::function<void(FilteredTexts&)>;

template <typename Change>
Step each_text(Change change) {
  return [change](FilteredTexts& filtered) {
    for (std::string& text : filtered.texts) text = change(text);
  };
}

void refuse_unknown(const OrderedJson& options, const std::vector<std::string>& known, const std::string& place) {
  for (const auto& item : options.items())
    if (std::find(known.begin(), known.end(), item.key()) == known.end())
      throw datasets::DataError(fmt::format("{}: '{}' is no option of this filter; expected {}", place, item.key(),
                                            known.empty() ? "none" : fmt::format("{}", fmt::join(known, ", "))));
}

// findall's match number `select`, from the end where it is negative; of its groups the first that is not empty.
std::string selected(const std::vector<std::vector<std::string>>& matches, std::int64_t select,
                     const std::string& fallback) {
  const auto count = static_cast<std::int64_t>(matches.size());
  if (select < 0) select += count;
  if (select < 0 || select >= count) return fallback;  // the harness aborts if there are matches, but fewer
  const std::vector<std::string>& groups = matches[static_cast<std::size_t>(select)];
  if (groups.size() == 1) return std::string(strip(groups[0]));
  const auto found = std::find_if(groups.begin(), groups.end(), [](const auto& group) { return !group.empty(); });
  return std::string(strip(found == groups.end() ? fallback : *found));
}

Step regex_step(const OrderedJson& options, const std::string& place) {
  refuse_unknown(options, {"regex_pattern", "group_select", "fallback"}, place);
  const OrderedJson* pattern = find_member(options, "regex_pattern", place);
  const OrderedJson* select = find_member(options, "group_select", place);
  const OrderedJson* fallback = find_member(options, "fallback", place);
  const PythonRegex regex(
      pattern != nullptr ? as_string(*pattern, place + ".regex_pattern") : R"(#### (\-?[0-9\.\,]+))",
      place + ".regex_pattern");
  const std::int64_t number = select != nullptr ? as_integer(*select, place + ".group_select", -1000, 1000) : 0;
  const std::string otherwise = fallback != nullptr ? as_string(*fallback, place + ".fallback") : "[invalid]";
  return each_text([=](const std::string& text) { return selected(regex.find_all(text), number, otherwise); });
}

Step take_first_step(const OrderedJson& options, const std::string& place) {
  refuse_unknown(options, {}, place);
  return [](FilteredTexts& filtered) {
    filtered.texts.resize(1);
    filtered.single = true;
  };
}

Step take_first_k_step(const OrderedJson& options, const std::string& place) {
  refuse_unknown(options, {"k"}, place);
  const auto k = static_cast<std::size_t>(as_integer(member(options, "k", place), place + ".k", 1, 1 << 20));
  return [k, place](FilteredTexts& filtered) {
    if (filtered.texts.size() < k)
      throw datasets::DataError(fmt::format("{}.k: found {} responses, expected {} or more: raise the task's repeats",
                                            place, filtered.texts.size(), k));
    filtered.texts.resize(k);
  };
}

// Of equally frequent texts the one that came first.
Step majority_vote_step(const OrderedJson& options, const std::string& place) {
  refuse_unknown(options, {}, place);
  return [](FilteredTexts& filtered) {
    std::map<std::string, std::size_t> counts;
    for (const std::string& text : filtered.texts) ++counts[text];
    const auto most =
        std::max_element(filtered.texts.begin(), filtered.texts.end(),
                         [&](const auto& left, const auto& right) { return counts[left] < counts[right]; });
    filtered.texts = {*most};
  };
}

Step lowercase_step(const OrderedJson& options, const std::string& place) {
  refuse_unknown(options, {}, place);
  return each_text([](const std::string& text) { return lower(text); });
}

Step remove_whitespace_step(const OrderedJson& options, const std::string& place) {
  refuse_unknown(options, {}, place);
  return each_text([](const std::string& text) { return std::string(strip(text)); });
}

const std::map<std::string, Step (*)(const OrderedJson&, const std::string&)>& makers() {
  static const std::map<std::string, Step (*)(const OrderedJson&, const std::string&)> all = {
      {"lowercase", &lowercase_step},   {"majority_vote", &majority_vote_step},
      {"regex", &regex_step},           {"remove_whitespace", &remove_whitespace_step},
      {"take_first", &take_first_step}, {"take_first_k", &take_first_k_step},
  };
  return all;
}

}  // namespace

ResponseFilter::ResponseFilter(const FilterSpec& spec, const std::string& place) : name_(spec.name) {
  bool single = false;
  for (const FilterStep& step : spec.steps) {
    const std::string at = fmt::format("{}: filter '{}': {}", place, spec.name, step.function);
    const auto maker = makers().find(step.function);
    if (maker == makers().end()) {
      std::vector<std::string> names;
      for (const auto& [name, make] : makers()) names.push_back(name);
      throw datasets::DataError(fmt::format("{}: is not supported; expected one of {}", at, fmt::join(names, ", ")));
    }
    if (single) throw datasets::DataError(at + ": stands behind take_first; expected it before");
    steps_.push_back(maker->second(step.options.is_null() ? OrderedJson::object() : step.options, at));
    single = step.function == "take_first";
  }
}

FilteredTexts ResponseFilter::apply(std::vector<std::string> texts) const {
  FilteredTexts filtered{std::move(texts), false};
  for (const Step& step : steps_) step(filtered);
  return filtered;
}

std::vector<FilterSpec> filters_of(const TaskSettings& settings) {
  if (!settings.filters.empty()) return settings.filters;
  return {{"none", {{"take_first", OrderedJson::object()}}}};
}

}  // namespace replayeval::tasks
