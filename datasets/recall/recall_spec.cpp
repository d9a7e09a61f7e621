#include "datasets/recall/recall_spec.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "datasets/plain_name.h"
#include "datasets/recall/recall_kinds.h"
#include "datasets/recall/recall_spec.h"

namespace replayeval::datasets {
namespace {

using recall::Kind;
using recall::KindOption;

constexpr const char* common_keys[] = {"kind", "name", "lengths", "depths", "items", "seed", "haystack"};

[[noreturn]] void refuse(const std::string& place, const std::string& key, const std::string& found,
                         const std::string& expected) {
  throw DataError(fmt::format("{}.{}: found {}, expected {}", place, key, found, expected));
}

const Kind& kind_of(const std::string& name, const std::string& place) {
  const Kind* kind = recall::find_kind(name);
  if (kind == nullptr)
    refuse(place, "kind", "'" + name + "'", fmt::format("one of {}", fmt::join(recall_kinds(), ", ")));
  return *kind;
}

void check_range(std::int64_t value, std::int64_t least, std::int64_t most, const std::string& place,
                 const std::string& key) {
  if (value < least || value > most)
    refuse(place, key, std::to_string(value), fmt::format("a whole number from {} to {}", least, most));
}

std::int64_t whole_number(const nlohmann::json& value, const std::string& place, const std::string& key) {
  const bool fits = value.is_number_integer() &&
                    (!value.is_number_unsigned() || value.get<std::uint64_t>() <= std::uint64_t{INT64_MAX});
  if (!fits) refuse(place, key, value.dump(), "a whole number");
  return value.get<std::int64_t>();
}

std::string text(const nlohmann::json& value, const std::string& place, const std::string& key) {
  if (!value.is_string()) refuse(place, key, value.dump(), "a string");
  return value.get<std::string>();
}

const nlohmann::json& list(const nlohmann::json& value, const std::string& place, const std::string& key) {
  if (!value.is_array()) refuse(place, key, value.dump(), "a list");
  return value;
}

void check_keys(const nlohmann::json& object, const Kind& kind, const std::string& place) {
  std::vector<std::string> known(std::begin(common_keys), std::end(common_keys));
  for (const KindOption& option : kind.options) known.emplace_back(option.name);
  for (const auto& [key, value] : object.items())
    if (std::find(known.begin(), known.end(), key) == known.end())
      throw DataError(
          fmt::format("{}.{}: unknown key of {}; expected one of {}", place, key, kind.name, fmt::join(known, ", ")));
}

void parse_lists(const nlohmann::json& object, const std::string& place, RecallSpec& spec) {
  if (!object.contains("lengths")) throw DataError(place + ".lengths: missing, expected a list of numbers of tokens");
  for (const nlohmann::json& length : list(object["lengths"], place, "lengths"))
    spec.lengths.push_back(whole_number(length, place, "lengths"));
  if (object.contains("depths")) {
    for (const nlohmann::json& depth : list(object["depths"], place, "depths")) {
      if (!depth.is_number()) refuse(place, "depths", depth.dump(), "numbers from 0 to 1");
      spec.depths.push_back(depth.get<double>());
    }
  } else if (spec.kind != "facts") {
    spec.depths = {0.0, 0.25, 0.5, 0.75, 1.0};
  }
  if (object.contains("haystack")) {
    std::size_t number = 0;
    for (const nlohmann::json& source : list(object["haystack"], place, "haystack"))
      spec.haystack.push_back(parse_text_source(source, fmt::format("{}.haystack[{}]", place, number++)));
  }
}

// Documents that are drawn once would count as two.
void refuse_repeats(const std::vector<std::int64_t>& lengths, const std::vector<double>& depths,
                    const std::string& place) {
  const auto same_stream = [](double a, double b) { return recall::depth_number(a) == recall::depth_number(b); };
  for (auto length = lengths.begin(); length != lengths.end(); ++length)
    if (std::find(lengths.begin(), length, *length) != length)
      refuse(place, "lengths", fmt::format("{} again", *length), "each length once");
  for (auto depth = depths.begin(); depth != depths.end(); ++depth)
    if (std::any_of(depths.begin(), depth, [&](double before) { return same_stream(before, *depth); }))
      refuse(place, "depths", fmt::format("{} again, to six decimals", *depth), "each depth once");
}

void check_lists(const RecallSpec& spec, const std::string& place) {
  if (spec.lengths.empty()) refuse(place, "lengths", "none", "at least one number of tokens");
  for (const std::int64_t length : spec.lengths) check_range(length, 1, longest_recall, place, "lengths");
  for (const double depth : spec.depths)
    if (!(depth >= 0.0 && depth <= 1.0)) refuse(place, "depths", fmt::format("{}", depth), "numbers from 0 to 1");
  refuse_repeats(spec.lengths, spec.depths, place);
  if (spec.depths.empty() && spec.kind != "facts") refuse(place, "depths", "none", "at least one number from 0 to 1");
}

}  // namespace

void recall::check_spec(const RecallSpec& spec, const std::string& place) {
  const Kind& kind = kind_of(spec.kind, place);
  check_lists(spec, place);
  check_range(spec.items, 1, 1000000, place, "items");
  for (const KindOption& option : kind.options)
    check_range(spec.options.*option.value, option.least, option.most, place, option.name);
  if (spec.kind == "facts") check_range(spec.options.questions, 1, spec.options.facts, place, "questions");
  if (spec.kind == "associative_recall") check_range(spec.options.questions, 1, spec.options.pairs, place, "questions");
}

RecallSpec parse_recall(const nlohmann::json& object, const std::string& place) {
  if (!object.is_object()) throw DataError(fmt::format("{}: found {}, expected an object", place, object.dump()));
  if (!object.contains("kind"))
    throw DataError(fmt::format("{}.kind: missing, expected one of {}", place, fmt::join(recall_kinds(), ", ")));
  RecallSpec spec;
  spec.kind = text(object["kind"], place, "kind");
  const Kind& kind = kind_of(spec.kind, place);
  check_keys(object, kind, place);
  spec.name = object.contains("name") ? text(object["name"], place, "name") : spec.kind;
  if (!is_plain_name(spec.name)) refuse(place, "name", nlohmann::json(spec.name).dump(), plain_name_rule);
  parse_lists(object, place, spec);
  if (object.contains("items")) spec.items = whole_number(object["items"], place, "items");
  if (object.contains("seed")) {
    const nlohmann::json& seed = object["seed"];
    if (!seed.is_number_integer() || (!seed.is_number_unsigned() && seed.get<std::int64_t>() < 0))
      refuse(place, "seed", seed.dump(), fmt::format("a whole number from 0 to {}", INT64_MAX));
    spec.seed = seed.get<std::uint64_t>();
  }
  for (const KindOption& option : kind.options)
    if (object.contains(option.name))
      spec.options.*option.value = whole_number(object[option.name], place, option.name);
  recall::check_spec(spec, place);
  return spec;
}

nlohmann::json to_json(const RecallSpec& spec) {
  nlohmann::json json = {{"kind", spec.kind},     {"name", spec.name},   {"lengths", spec.lengths},
                         {"depths", spec.depths}, {"items", spec.items}, {"seed", spec.seed}};
  for (const KindOption& option : kind_of(spec.kind, "recall").options) json[option.name] = spec.options.*option.value;
  json["haystack"] = nlohmann::json::array();
  for (const TextSourceSpec& source : spec.haystack) json["haystack"].push_back(to_json(source));
  return json;
}

}  // namespace replayeval::datasets
