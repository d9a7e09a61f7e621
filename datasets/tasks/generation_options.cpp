#include "datasets/tasks/generation_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "datasets/tasks/json_member.h"

namespace replayeval::tasks {
namespace {

constexpr std::array<const char*, 4> length_keys = {"max_gen_toks", "max_new_tokens", "max_tokens",
                                                    "max_completion_tokens"};
constexpr std::array<const char*, 5> other_keys = {"until", "do_sample", "temperature", "top_p", "top_k"};
constexpr double most_tokens = 1 << 30;

std::vector<std::string> stop_strings(const OrderedJson& value, const std::string& place) {
  if (value.is_string()) return {value.get<std::string>()};
  if (!value.is_array()) refuse(value, place, "a string or a list of strings");
  std::vector<std::string> strings;
  for (const OrderedJson& element : value) strings.push_back(as_string(element, place));
  return strings;
}

void read_sampling(const OrderedJson& kwargs, const std::string& place, GenerationOptions& options) {
  const auto at = [&](const char* key) { return place + "." + key; };
  if (const OrderedJson* value = find_member(kwargs, "temperature", place)) {
    options.temperature = as_number(*value, at("temperature"));
    if (!(options.temperature >= 0)) refuse(*value, at("temperature"), "a number of 0 or more");
  }
  const OrderedJson* do_sample = find_member(kwargs, "do_sample", place);
  options.sample = do_sample != nullptr ? as_boolean(*do_sample, at("do_sample")) : options.temperature > 0;
  if (!options.sample) options.temperature = 0;
  // Sampling without a temperature: the harness hands on 0, which transformers refuses.
  if (options.sample && options.temperature == 0)
    throw datasets::DataError(fmt::format("{}: samples at temperature 0; expected a temperature above 0", place));
  if (const OrderedJson* value = find_member(kwargs, "top_p", place)) options.top_p = as_number(*value, at("top_p"));
  if (const OrderedJson* value = find_member(kwargs, "top_k", place))
    options.top_k = as_integer(*value, at("top_k"), 0, 1 << 30);
}

}  // namespace

GenerationOptions parse_generation(const OrderedJson& kwargs, const std::string& place) {
  GenerationOptions options;
  if (const OrderedJson* until = find_member(kwargs, "until", place))
    options.until = stop_strings(*until, place + ".until");
  for (const char* key : length_keys) {
    const OrderedJson* value = find_member(kwargs, key, place);
    if (value == nullptr) continue;
    const double tokens = as_number(*value, place + "." + key);
    if (!(tokens >= 1 && tokens <= most_tokens)) refuse(*value, place + "." + key, "a number of tokens, 1 or more");
    options.max_tokens = static_cast<std::int64_t>(tokens);
    break;
  }
  read_sampling(kwargs, place, options);
  for (const auto& item : kwargs.items()) {
    const auto is = [&](const char* key) { return item.key() == key; };
    if (std::none_of(length_keys.begin(), length_keys.end(), is) &&
        std::none_of(other_keys.begin(), other_keys.end(), is))
      options.ignored.push_back(item.key());
  }
  return options;
}

}  // namespace replayeval::tasks
