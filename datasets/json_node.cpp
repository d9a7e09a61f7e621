#include "datasets/json_node.h"

#include <fmt/format.h>

#include <algorithm>

namespace replayeval::datasets {
namespace {

constexpr std::size_t shown_bytes = 60;  // of a value in a message

std::string shown(const nlohmann::json& value) {
  if (value.is_object()) return fmt::format("an object of {} members", value.size());
  if (value.is_array()) return fmt::format("a list of {} elements", value.size());
  std::string text = value.dump(-1, ' ', true);  // ASCII alone, so that a cut never parts a character
  if (text.size() > shown_bytes) text = text.substr(0, shown_bytes) + "...";
  return text;
}

}  // namespace

void JsonNode::fail(std::string_view message) const { throw DataError(fmt::format("{}: {}", place_, message)); }

void JsonNode::refuse(std::string_view expected) const {
  fail(fmt::format("found {}, expected {}", shown(*value_), expected));
}

void JsonNode::require_object() const {
  if (!value_->is_object()) refuse("an object");
}

void JsonNode::require_array() const {
  if (!value_->is_array()) refuse("a list");
}

std::optional<JsonNode> JsonNode::find(const std::string& key) const {
  require_object();
  const auto found = value_->find(key);
  if (found == value_->end() || found->is_null()) return std::nullopt;
  // "FILE: a.b": a colon after the file, points after that.
  const char* between = place_.find(": ") == std::string::npos ? ": " : ".";
  return JsonNode(*found, place_ + between + key);
}

JsonNode JsonNode::at(const std::string& key) const {
  const auto found = find(key);
  if (!found) fail(fmt::format("'{}' is missing or null", key));
  return *found;
}

JsonNode JsonNode::element(std::size_t index) const {
  return {value_->at(index), fmt::format("{}[{}]", place_, index)};
}

std::vector<JsonNode> JsonNode::elements() const {
  require_array();
  std::vector<JsonNode> nodes;
  nodes.reserve(value_->size());
  for (std::size_t i = 0; i < value_->size(); ++i) nodes.push_back(element(i));
  return nodes;
}

const std::string& JsonNode::string() const {
  if (!value_->is_string()) refuse("a string");
  return value_->get_ref<const std::string&>();
}

bool JsonNode::boolean() const {
  if (!value_->is_boolean()) refuse("true or false");
  return value_->get<bool>();
}

std::int64_t JsonNode::integer(std::int64_t low, std::int64_t high) const {
  const std::string expected = fmt::format("a whole number from {} to {}", low, high);
  if (!value_->is_number_integer()) refuse(expected);
  if (value_->is_number_unsigned() && value_->get<std::uint64_t>() > static_cast<std::uint64_t>(high)) refuse(expected);
  const auto number = value_->get<std::int64_t>();
  if (number < low || number > high) refuse(expected);
  return number;
}

bool JsonNode::boolean_or(const std::string& key, bool fallback) const {
  const auto member = find(key);
  return member ? member->boolean() : fallback;
}

std::string JsonNode::string_or(const std::string& key, const std::string& fallback) const {
  const auto member = find(key);
  return member ? member->string() : fallback;
}

std::size_t JsonNode::choice(const std::vector<std::string_view>& names) const {
  const auto found = std::find(names.begin(), names.end(), string());
  if (found == names.end()) {
    fail(fmt::format("{} is not supported; expected one of {}", shown(*value_), fmt::join(names, ", ")));
  }
  return static_cast<std::size_t>(found - names.begin());
}

nlohmann::json parse_json(std::string_view text, const std::string& file) {
  try {
    return nlohmann::json::parse(text);
  } catch (const nlohmann::json::parse_error& error) {
    throw DataError(fmt::format("{}: byte {}: not JSON; expected an object in UTF-8", file, error.byte));
  } catch (const nlohmann::json::exception& error) {  // a number out of range
    throw DataError(fmt::format("{}: {}", file, error.what()));
  }
}

}  // namespace replayeval::datasets
