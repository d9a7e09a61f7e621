// TextSourceSpec to and from JSON.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "datasets/text_source.h"

namespace replayeval::datasets {
namespace {

constexpr std::array<std::string_view, 7> known_keys = {"path",          "name",       "separator",  "sha256",
                                                        "max_documents", "max_tokens", "sample_seed"};

std::string get_string(const nlohmann::json& object, const char* key, const std::string& place) {
  const auto found = object.find(key);
  if (found == object.end()) {
    return "";
  }
  if (!found->is_string()) {
    throw DataError(fmt::format("{}.{}: found {}, expected a string", place, key, found->dump()));
  }
  return found->get<std::string>();
}

std::optional<std::int64_t> get_count(const nlohmann::json& object, const char* key, const std::string& place) {
  const auto found = object.find(key);
  if (found == object.end()) {
    return std::nullopt;
  }
  if (!found->is_number_integer() || (!found->is_number_unsigned() && found->get<std::int64_t>() < 0)) {
    throw DataError(fmt::format("{}.{}: found {}, expected a whole number, 0 or more", place, key, found->dump()));
  }
  return found->get<std::int64_t>();
}

void check_keys(const nlohmann::json& object, const std::string& place) {
  for (const auto& [key, value] : object.items()) {
    if (std::find(known_keys.begin(), known_keys.end(), key) == known_keys.end()) {
      throw DataError(fmt::format("{}.{}: unknown key; expected one of {}", place, key, fmt::join(known_keys, ", ")));
    }
  }
}

void check_sha256(const std::string& sha256, const std::string& place) {
  if (!sha256.empty() && (sha256.size() != 64 || sha256.find_first_not_of("0123456789abcdef") != std::string::npos)) {
    throw DataError(fmt::format("{}.sha256: found '{}', expected 64 lower-case hexadecimal digits", place, sha256));
  }
}

std::string default_name(const std::string& path) {
  std::filesystem::path last = std::filesystem::path(path).filename();
  if (last.extension() == ".gz") {
    last = last.stem();
  }
  // "heldout/wordnet/*.txt": the folder says more than the pattern
  const bool pattern = last.string().find_first_of("*?[") != std::string::npos;
  const std::filesystem::path folder = std::filesystem::path(path).parent_path().filename();
  return pattern && !folder.empty() ? folder.string() : last.stem().string();
}

}  // namespace

TextSourceSpec parse_text_source(const nlohmann::json& object, const std::string& place) {
  TextSourceSpec spec;
  if (object.is_string()) {
    spec.path = object.get<std::string>();
  } else if (object.is_object()) {
    check_keys(object, place);
    spec.path = get_string(object, "path", place);
    spec.name = get_string(object, "name", place);
    spec.separator = get_string(object, "separator", place);
    spec.sha256 = get_string(object, "sha256", place);
    spec.max_documents = get_count(object, "max_documents", place).value_or(0);
    spec.max_tokens = get_count(object, "max_tokens", place).value_or(0);
    if (const auto seed = get_count(object, "sample_seed", place)) {
      spec.sample_seed = static_cast<std::uint64_t>(*seed);
    }
  } else {
    throw DataError(fmt::format("{}: found {}, expected a path or an object with a path", place, object.dump()));
  }
  if (spec.path.empty()) {
    throw DataError(fmt::format("{}.path: missing or empty; expected a file or a glob", place));
  }
  check_sha256(spec.sha256, place);
  if (spec.sample_seed && spec.max_documents == 0) {
    throw DataError(fmt::format("{}.sample_seed: means nothing without max_documents; expected both", place));
  }
  if (spec.name.empty()) {
    spec.name = default_name(spec.path);
  }
  return spec;
}

nlohmann::json to_json(const TextSourceSpec& spec) {
  nlohmann::json object = {{"name", spec.name}, {"path", spec.path}};
  if (!spec.separator.empty()) {
    object["separator"] = spec.separator;
  }
  if (!spec.sha256.empty()) {
    object["sha256"] = spec.sha256;
  }
  if (spec.max_documents > 0) {
    object["max_documents"] = spec.max_documents;
  }
  if (spec.max_tokens > 0) {
    object["max_tokens"] = spec.max_tokens;
  }
  if (spec.sample_seed) {
    object["sample_seed"] = *spec.sample_seed;
  }
  return object;
}

}  // namespace replayeval::datasets
