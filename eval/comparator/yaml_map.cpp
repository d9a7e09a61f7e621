#include "eval/comparator/yaml_map.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fstream>
#include <set>
#include <sstream>

#include "datasets/one_line.h"
#include "datasets/plain_name.h"
#include "datasets/utf8.h"
#include "eval/comparator/run_config.h"

namespace replayeval {
namespace {

std::string describe(const YAML::Node& value) {
  switch (value.Type()) {
    case YAML::NodeType::Scalar: {
      return (value.Tag() == "!" ? "the string '" : "'") + datasets::one_line(value.Scalar(), 200) + "'";
    }
    case YAML::NodeType::Sequence:
      return value.size() == 0 ? "an empty list" : "a list";
    case YAML::NodeType::Map:
      return value.size() == 0 ? "an empty mapping" : "a mapping";
    default:
      return "nothing";
  }
}

// Quoted scalars are strings, whatever they look like.
bool plain_scalar(const YAML::Node& value) { return value.IsScalar() && value.Tag() != "!"; }

template <typename T>
std::optional<T> parse_whole(const std::string& text) {
  T result{};
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, result);
  if (error != std::errc() || rest != end) return std::nullopt;
  return result;
}

std::string range_of(std::int64_t low, std::int64_t high) {
  return "a whole number from " + std::to_string(low) + " to " + std::to_string(high);
}

std::string short_number(double value) {
  std::string text = std::to_string(value);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text;
}

}  // namespace

namespace {

nlohmann::json json_scalar(const YAML::Node& node) {
  const std::string& text = node.Scalar();
  if (!plain_scalar(node)) return text;
  if (text == "true" || text == "false") return text == "true";
  if (text.empty() || text == "~" || text == "null") return nullptr;
  if (const auto whole = parse_whole<std::int64_t>(text)) return *whole;
  if (const auto number = parse_whole<double>(text)) return *number;
  return text;
}

nlohmann::json json_of(const YAML::Node& node, const std::filesystem::path& file, int depth) {
  constexpr int deepest = 100;
  if (depth > deepest) throw ConfigError(place_of(file, node.Mark()) + ": nested deeper than 100; expected less");
  if (node.IsSequence()) {
    nlohmann::json list = nlohmann::json::array();
    for (const YAML::Node& entry : node) list.push_back(json_of(entry, file, depth + 1));
    return list;
  }
  if (!node.IsMap()) return node.IsScalar() ? json_scalar(node) : nlohmann::json();
  nlohmann::json object = nlohmann::json::object();
  for (const auto& entry : node) {
    if (!entry.first.IsScalar()) throw ConfigError(place_of(file, entry.first.Mark()) + ": expected a key");
    const std::string key = entry.first.Scalar();
    if (object.contains(key)) throw ConfigError(place_of(file, entry.first.Mark()) + ": key '" + key + "' again");
    object[key] = json_of(entry.second, file, depth + 1);
  }
  return object;
}

}  // namespace

nlohmann::json json_of(const YAML::Node& node, const std::filesystem::path& file) { return json_of(node, file, 0); }

std::string place_of(const std::filesystem::path& file, const YAML::Mark& mark) {
  if (mark.is_null()) return file.string();
  return file.string() + ":" + std::to_string(mark.line + 1) + ":" + std::to_string(mark.column + 1);
}

YAML::Node parse_yaml(const std::string& text, const std::filesystem::path& file, const std::string& expected) {
  // What is in it ends in JSON and XML, which hold nothing else.
  if (const auto fault = datasets::find_utf8_fault(text))
    throw ConfigError(file.string() + ": byte " + std::to_string(fault->offset) + ": found " + fault->found +
                      ", expected UTF-8");
  try {
    const std::vector<YAML::Node> documents = YAML::LoadAll(text);
    if (documents.size() > 1)
      throw ConfigError(place_of(file, documents[1].Mark()) + ": a second YAML document; expected one in a file");
    if (!documents.empty() && !documents[0].IsNull()) return documents[0];
  } catch (const YAML::Exception& error) {
    throw ConfigError(place_of(file, error.mark) + ": expected YAML: " + error.msg);
  }
  throw ConfigError(file.string() + ": empty; expected " + expected);
}

std::string read_yaml_file(const std::filesystem::path& file) {
  std::error_code error;
  if (std::filesystem::is_directory(file, error))
    throw ConfigError(file.string() + ": is a folder; expected a YAML file");
  std::ifstream stream(file, std::ios::binary);
  std::ostringstream text;
  if (stream) text << stream.rdbuf();
  if (!stream) throw ConfigError(file.string() + ": cannot be read; expected a YAML file");
  return text.str();
}

std::string join_words(const Words& words) {
  std::string text;
  for (const std::string_view word : words) text += (text.empty() ? "" : ", ") + std::string(word);
  return text;
}

YamlMap::YamlMap(const YAML::Node& node, std::filesystem::path file, std::string what, const Words& keys)
    : node_(node), file_(std::move(file)), what_(std::move(what)) {
  if (!node_.IsMap())
    throw ConfigError(place_of(file_, node_.Mark()) + ": expected " + what_ + ", a mapping of " + join_words(keys) +
                      "; found " + describe(node_));
  std::set<std::string> seen;
  for (const auto& entry : node_) {
    const std::string key = entry.first.IsScalar() ? entry.first.Scalar() : "?";
    const std::string start = place_of(file_, entry.first.Mark()) + ": key '" + key + "': ";
    if (std::find(keys.begin(), keys.end(), key) == keys.end())
      throw ConfigError(start + "unknown in " + what_ + "; expected one of " + join_words(keys));
    if (!seen.insert(key).second) throw ConfigError(start + "given twice in " + what_ + "; expected once");
  }
}

bool YamlMap::has(const std::string& key) const { return node_[key].IsDefined(); }

std::string YamlMap::place(const std::string& key) const {
  return place_of(file_, has(key) ? node_[key].Mark() : node_.Mark());
}

void YamlMap::fail(const std::string& key, const std::string& message) const {
  throw ConfigError(place(key) + ": key '" + key + "': " + message);
}

YAML::Mark YamlMap::key_mark(const std::string& key) const {
  for (const auto& entry : node_)
    if (entry.first.IsScalar() && entry.first.Scalar() == key) return entry.first.Mark();
  return node_.Mark();
}

void YamlMap::unexpected(const std::string& key, const YAML::Node& value, const std::string& expected) const {
  // A value that is not there stands, for yaml-cpp, wherever the next token is.
  const YAML::Mark mark = value.IsNull() ? key_mark(key) : value.Mark();
  throw ConfigError(place_of(file_, mark) + ": key '" + key + "': expected " + expected + ", found " + describe(value));
}

YAML::Node YamlMap::require(const std::string& key, const std::string& expected) const {
  if (!has(key)) fail(key, "missing from " + what_ + "; expected " + expected);
  return node_[key];
}

std::string YamlMap::text(const std::string& key, const std::string& expected) const {
  const YAML::Node value = require(key, expected);
  if (!value.IsScalar() || value.Scalar().empty()) unexpected(key, value, expected);
  return value.Scalar();
}

std::string YamlMap::name(const std::string& key) const {
  std::string name = text(key, datasets::plain_name_rule);
  if (!datasets::is_plain_name(name)) unexpected(key, node_[key], datasets::plain_name_rule);
  return name;
}

std::string YamlMap::word_of(const std::string& key, const YAML::Node& value, const Words& allowed) const {
  const std::string expected = allowed.size() == 1 ? std::string(allowed[0]) : "one of " + join_words(allowed);
  if (!value.IsScalar() || std::find(allowed.begin(), allowed.end(), value.Scalar()) == allowed.end())
    unexpected(key, value, expected);
  return value.Scalar();
}

std::string YamlMap::word(const std::string& key, const Words& allowed) const {
  return word_of(key, require(key, "one of " + join_words(allowed)), allowed);
}

std::int64_t YamlMap::integer_of(const std::string& key, const YAML::Node& value, std::int64_t low,
                                 std::int64_t high) const {
  const auto number = plain_scalar(value) ? parse_whole<std::int64_t>(value.Scalar()) : std::nullopt;
  if (!number || *number < low || *number > high) unexpected(key, value, range_of(low, high));
  return *number;
}

std::int64_t YamlMap::integer(const std::string& key, std::int64_t low, std::int64_t high) const {
  return integer_of(key, require(key, range_of(low, high)), low, high);
}

double YamlMap::number(const std::string& key, double above, double below) const {
  const std::string expected = "a number between " + short_number(above) + " and " + short_number(below);
  const YAML::Node value = require(key, expected);
  const auto number = plain_scalar(value) ? parse_whole<double>(value.Scalar()) : std::nullopt;
  if (!number || !(*number > above && *number < below)) unexpected(key, value, expected);
  return *number;
}

double YamlMap::share(const std::string& key) const {
  const std::string expected = "a number above 0 and at most 1";
  const YAML::Node value = require(key, expected);
  const auto number = plain_scalar(value) ? parse_whole<double>(value.Scalar()) : std::nullopt;
  if (!number || !(*number > 0.0 && *number <= 1.0)) unexpected(key, value, expected);
  return *number;
}

double YamlMap::number_from(const std::string& key, double low) const {
  const std::string expected = "a number, " + short_number(low) + " or more";
  const YAML::Node value = require(key, expected);
  const auto number = plain_scalar(value) ? parse_whole<double>(value.Scalar()) : std::nullopt;
  if (!number || !(*number >= low) || !std::isfinite(*number)) unexpected(key, value, expected);
  return *number;
}

bool YamlMap::boolean(const std::string& key) const {
  const YAML::Node value = require(key, "true or false");
  if (!plain_scalar(value) || (value.Scalar() != "true" && value.Scalar() != "false"))
    unexpected(key, value, "true or false");
  return value.Scalar() == "true";
}

std::vector<YAML::Node> YamlMap::list(const std::string& key, const std::string& expected) const {
  const YAML::Node value = require(key, expected);
  if (!value.IsSequence() || value.size() == 0) unexpected(key, value, expected);
  return {value.begin(), value.end()};
}

std::vector<std::string> YamlMap::texts(const std::string& key) const {
  const std::string expected = "a string or a list of strings, none empty";
  const YAML::Node value = require(key, expected);
  const bool list = value.IsSequence();
  const std::vector<YAML::Node> nodes =
      list ? std::vector<YAML::Node>(value.begin(), value.end()) : std::vector<YAML::Node>{value};
  std::vector<std::string> result;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (!nodes[i].IsScalar() || nodes[i].Scalar().empty())
      unexpected(key, nodes[i],
                 list ? "item " + std::to_string(i + 1) + " of the list to be a string that is not empty" : expected);
    result.push_back(nodes[i].Scalar());
  }
  return result;
}

std::vector<std::int64_t> YamlMap::integers(const std::string& key, std::int64_t low, std::int64_t high) const {
  std::vector<std::int64_t> result;
  for (const YAML::Node& value : list(key, "a list of whole numbers from " + std::to_string(low) + " to " +
                                               std::to_string(high) + ", ascending")) {
    result.push_back(integer_of(key, value, low, high));
    if (result.size() > 1 && result.back() <= result[result.size() - 2])
      unexpected(key, value, "a number above the one before it, " + std::to_string(result[result.size() - 2]));
  }
  return result;
}

std::vector<std::string> YamlMap::words(const std::string& key, const Words& allowed) const {
  std::vector<std::string> result;
  for (const YAML::Node& value : list(key, "a list of " + join_words(allowed))) {
    result.push_back(word_of(key, value, allowed));
    if (std::count(result.begin(), result.end(), result.back()) > 1)
      unexpected(key, value, "each of " + join_words(allowed) + " at most once");
  }
  return result;
}

}  // namespace replayeval
