// Strict reading of YAML mappings: every key known, none twice, every value of the type and range asked for.
#pragma once

#include <yaml-cpp/yaml.h>

#include <nlohmann/json.hpp>

#include <cstdint>
#include <filesystem>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace replayeval {

using Words = std::vector<std::string_view>;

// One mapping of a file. All functions throw ConfigError: "FILE:LINE:COL: key 'KEY': expected ..., found ...".
class YamlMap {
 public:
  // `what` names the mapping in messages: "an arm". Throws on a node that is no mapping, an unknown and a repeated key.
  YamlMap(const YAML::Node& node, std::filesystem::path file, std::string what, const Words& keys);

  bool has(const std::string& key) const;
  // The value; a missing key is an error that says what was expected there.
  YAML::Node require(const std::string& key, const std::string& expected) const;

  std::string text(const std::string& key, const std::string& expected = "a non-empty string") const;
  // A name that can be part of a file name: at most 64 letters, digits, '.', '_', '-', not starting with '.'.
  std::string name(const std::string& key) const;
  std::string word(const std::string& key, const Words& allowed) const;
  std::int64_t integer(const std::string& key, std::int64_t low,
                       std::int64_t high = std::numeric_limits<std::int64_t>::max()) const;
  double number(const std::string& key, double above, double below) const;  // above < value < below
  double share(const std::string& key) const;                               // 0 < value <= 1
  double number_from(const std::string& key, double low) const;             // finite, low or more
  bool boolean(const std::string& key) const;
  // Sequences must have at least one element.
  std::vector<YAML::Node> list(const std::string& key, const std::string& expected) const;
  std::vector<std::string> texts(const std::string& key) const;  // one string, or a list of them; none is empty
  std::vector<std::int64_t> integers(const std::string& key, std::int64_t low, std::int64_t high) const;
  std::vector<std::string> words(const std::string& key, const Words& allowed) const;

  const std::filesystem::path& file() const { return file_; }
  std::string place(const std::string& key) const;  // "FILE:LINE:COL" of the key's value, or of the mapping
  [[noreturn]] void fail(const std::string& key, const std::string& message) const;

 private:
  YAML::Mark key_mark(const std::string& key) const;
  [[noreturn]] void unexpected(const std::string& key, const YAML::Node& value, const std::string& expected) const;
  std::int64_t integer_of(const std::string& key, const YAML::Node& value, std::int64_t low, std::int64_t high) const;
  std::string word_of(const std::string& key, const YAML::Node& value, const Words& allowed) const;

  YAML::Node node_;
  std::filesystem::path file_;
  std::string what_;
};

// A node as JSON: plain scalars as YAML 1.2's core schema reads them, quoted ones as text. Throws ConfigError on an
// alias loop's depth (100) and on mapping keys that are no scalars or come twice.
nlohmann::json json_of(const YAML::Node& node, const std::filesystem::path& file);

// The one document of a file's text. Throws ConfigError on other than one; `expected` says what an empty one lacks.
YAML::Node parse_yaml(const std::string& text, const std::filesystem::path& file, const std::string& expected);
std::string read_yaml_file(const std::filesystem::path& file);  // throws ConfigError

// "FILE:LINE:COL", counted from 1.
std::string place_of(const std::filesystem::path& file, const YAML::Mark& mark);
std::string join_words(const Words& words);  // "a, b, c"

}  // namespace replayeval
