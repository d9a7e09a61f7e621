#include "eval/model/config_reader.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <utility>

#include "eval/checkpoint/json_text.h"

namespace replayeval {

using nlohmann::json;

ConfigReader::ConfigReader(const Checkpoint& checkpoint)
    : ConfigReader(checkpoint.config_file().string(), "", checkpoint.config(), checkpoint.passes_over_unknown_keys()) {
  // How weights are stored, whatever the architecture: float8_scales.h has it. Other forms of quantization are unknown.
  const auto quantization = config_.find("quantization_config");
  if (quantization == config_.end() || !quantization->is_object()) return;
  const auto method = quantization->find("quant_method");
  if (method != quantization->end() && (*method == "fp8" || *method == "modelopt" || *method == "compressed-tensors"))
    read_.insert("quantization_config");
}

ConfigReader::ConfigReader(std::string file, std::string path, const json& config, bool passes_over_unknown_keys)
    : file_(std::move(file)),
      path_(std::move(path)),
      config_(config),
      passes_over_unknown_keys_(passes_over_unknown_keys) {}

const json* ConfigReader::find(const std::string& key) {
  const auto found = config_.find(key);
  if (found == config_.end()) return nullptr;
  read_.insert(key);
  return found->is_null() ? nullptr : &*found;
}

bool ConfigReader::has(const std::string& key) const {
  const auto found = config_.find(key);
  return found != config_.end() && !found->is_null();
}

bool ConfigReader::present(const std::string& key) const { return config_.contains(key); }

bool ConfigReader::says(const std::string& key, const json& value) {
  const json* found = find(key);
  return found != nullptr && *found == value;
}

std::string ConfigReader::one_of(const std::string& key, const std::string& other) {
  if (has(key) && has(other) && config_.at(key) != config_.at(other))
    fail(other, "the same as " + key + ": " + show(config_.at(key)));
  const bool takes_other = has(other) && !has(key);
  ignore({takes_other ? key : other});
  return takes_other ? other : key;
}

void ConfigReader::fail(const std::string& key, const std::string& expectation) const {
  const auto found = config_.find(key);
  throw CheckpointError(file_ + ": key \"" + path_ + key + "\" " +
                        (found == config_.end() ? "is missing" : "is " + show(*found)) + "; expected " + expectation);
}

std::int64_t ConfigReader::positive(const std::string& key) {
  constexpr std::int64_t largest = std::int64_t{1} << 31;  // keeps products of two sizes inside 63 bits
  const json* value = find(key);
  if (value == nullptr || !value->is_number_integer() || value->get<std::int64_t>() < 1 ||
      value->get<std::int64_t>() > largest)
    fail(key, "an integer of at least 1");
  return value->get<std::int64_t>();
}

std::int64_t ConfigReader::positive(const std::string& key, std::int64_t fallback) {
  return find(key) == nullptr ? fallback : positive(key);
}

double ConfigReader::number(const std::string& key, double fallback) {
  const json* value = find(key);
  if (value == nullptr) return fallback;
  if (!value->is_number() || std::isnan(value->get<double>())) fail(key, "a number");
  return value->get<double>();
}

bool ConfigReader::flag(const std::string& key, bool fallback) {
  const json* value = find(key);
  if (value == nullptr) return fallback;
  if (!value->is_boolean()) fail(key, "true or false");
  return value->get<bool>();
}

std::string ConfigReader::word(const std::string& key, const std::string& fallback) {
  const json* value = find(key);
  if (value == nullptr) return fallback;
  if (!value->is_string()) fail(key, "a string");
  return value->get<std::string>();
}

std::vector<double> ConfigReader::numbers(const std::string& key, const std::vector<double>& fallback) {
  const json* value = find(key);
  if (value == nullptr) return fallback;
  const auto is_number = [](const json& item) { return item.is_number() && !std::isnan(item.get<double>()); };
  if (!value->is_array() || !std::all_of(value->begin(), value->end(), is_number)) fail(key, "a list of numbers");
  return value->get<std::vector<double>>();
}

std::vector<std::string> ConfigReader::words(const std::string& key) {
  const json* value = find(key);
  const auto is_word = [](const json& item) { return item.is_string(); };
  if (value == nullptr || !value->is_array() || !std::all_of(value->begin(), value->end(), is_word))
    fail(key, "a list of strings");
  return value->get<std::vector<std::string>>();
}

ConfigReader ConfigReader::nested(const std::string& key) {
  static const json nothing = json::object();
  const json* value = find(key);
  if (value != nullptr && !value->is_object()) fail(key, "an object");
  return {file_, path_ + key + ".", value == nullptr ? nothing : *value, passes_over_unknown_keys_};
}

void ConfigReader::ignore(const std::vector<std::string>& keys) {
  for (const std::string& key : keys)
    if (config_.contains(key)) ignored_.insert(key);
}

void ConfigReader::require(const std::string& key, const std::vector<json>& allowed, const std::string& why) {
  const json* value = find(key);
  if (value == nullptr || std::find(allowed.begin(), allowed.end(), *value) != allowed.end()) return;
  fail(key, show(allowed.front()) + ": " + why);
}

void ConfigReader::finish() const {
  if (passes_over_unknown_keys_) return;
  for (const auto& [key, value] : config_.items())
    if (!read_.contains(key) && !ignored_.contains(key))
      throw CheckpointError(file_ + ": unknown key \"" + path_ + key + "\" (" + show(value) +
                            "); expected only keys whose meaning for this architecture is known");
}

std::vector<std::string> ConfigReader::keys_read() const { return full_names({read_.begin(), read_.end()}); }

std::vector<std::string> ConfigReader::keys_ignored() const {
  std::vector<std::string> keys;
  std::set_difference(ignored_.begin(), ignored_.end(), read_.begin(), read_.end(), std::back_inserter(keys));
  return full_names(std::move(keys));
}

std::vector<std::string> ConfigReader::full_names(std::vector<std::string> keys) const {
  for (std::string& key : keys) key.insert(0, path_);
  return keys;
}

}  // namespace replayeval
