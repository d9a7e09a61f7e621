#include "datasets/tasks/json_member.h"

#include <fmt/format.h>

#include <cmath>

#include "datasets/one_line.h"

namespace replayeval::tasks {
namespace {

constexpr std::size_t shown_bytes = 60;

std::string shown(const OrderedJson& value) {
  if (value.is_object())
    return value.empty() ? "an empty object" : fmt::format("an object of {} members", value.size());
  if (value.is_array()) return value.empty() ? "an empty list" : fmt::format("a list of {} elements", value.size());
  if (value.is_number_float() && !std::isfinite(value.get<double>())) return write_python_json(value);
  std::string text = value.dump(-1, ' ', true);  // ASCII alone, so that a cut never parts a character
  if (text.size() > shown_bytes) text = text.substr(0, shown_bytes) + "...";
  return text;
}

std::string joined(const std::string& place, const std::string& key) { return fmt::format("{}: {}", place, key); }

}  // namespace

void refuse(const OrderedJson& value, const std::string& place, std::string_view expected) {
  throw datasets::DataError(fmt::format("{}: found {}, expected {}", place, shown(value), expected));
}

const OrderedJson* find_member(const OrderedJson& object, const std::string& key, const std::string& place) {
  if (!object.is_object()) refuse(object, place, "an object");
  const auto found = object.find(key);
  return found == object.end() || found->is_null() ? nullptr : &*found;
}

const OrderedJson& member(const OrderedJson& object, const std::string& key, const std::string& place) {
  const OrderedJson* found = find_member(object, key, place);
  if (found == nullptr)
    throw datasets::DataError(fmt::format("{}: '{}' is missing or null; expected a value", place, key));
  return *found;
}

const std::string& string_member(const OrderedJson& object, const std::string& key, const std::string& place) {
  return as_string(member(object, key, place), joined(place, key));
}

const std::string& as_string(const OrderedJson& value, const std::string& place) {
  if (!value.is_string()) refuse(value, place, "a string");
  return value.get_ref<const std::string&>();
}

const std::string& as_name(const OrderedJson& value, const std::string& place) {
  constexpr std::size_t longest = 200;
  const std::string& name = as_string(value, place);
  if (datasets::one_line(name, longest) != name)
    refuse(value, place, "a name of at most 200 bytes without control characters");
  return name;
}

std::int64_t as_integer(const OrderedJson& value, const std::string& place, std::int64_t low, std::int64_t high) {
  const bool fits = value.is_number_integer() &&
                    (!value.is_number_unsigned() || value.get<std::uint64_t>() <= static_cast<std::uint64_t>(high));
  if (!fits || value.get<std::int64_t>() < low || value.get<std::int64_t>() > high)
    refuse(value, place, fmt::format("a whole number from {} to {}", low, high));
  return value.get<std::int64_t>();
}

double as_number(const OrderedJson& value, const std::string& place) {
  if (!value.is_number()) refuse(value, place, "a number");
  return value.get<double>();
}

bool as_boolean(const OrderedJson& value, const std::string& place) {
  if (!value.is_boolean()) refuse(value, place, "true or false");
  return value.get<bool>();
}

}  // namespace replayeval::tasks
