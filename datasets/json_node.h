// A JSON value and where it stands, so that every complaint names the file and the place.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "datasets/error.h"

namespace replayeval::datasets {

// Refers to the document, which must outlive it. Every accessor throws DataError "PLACE: found ..., expected ...".
class JsonNode {
 public:
  JsonNode(const nlohmann::json& value, std::string place) : value_(&value), place_(std::move(place)) {}

  const nlohmann::json& value() const { return *value_; }
  const std::string& place() const { return place_; }  // e.g. "tokenizer.json: model.merges[3]"

  JsonNode at(const std::string& key) const;                   // of an object; throws if the key is missing
  std::optional<JsonNode> find(const std::string& key) const;  // nothing if the key is missing or null
  std::vector<JsonNode> elements() const;                      // of an array
  JsonNode element(std::size_t index) const;                   // of an array that is known to be that long

  const std::string& string() const;
  bool boolean() const;
  std::int64_t integer(std::int64_t low, std::int64_t high) const;  // within low … high
  bool boolean_or(const std::string& key, bool fallback) const;     // of an object: its member, or the fallback
  std::string string_or(const std::string& key, const std::string& fallback) const;

  void require_object() const;
  void require_array() const;

  // The index of the string in `names`; throws "type "X" is not supported; expected one of A, B".
  std::size_t choice(const std::vector<std::string_view>& names) const;

  // "PLACE: found VALUE, expected EXPECTED".
  [[noreturn]] void refuse(std::string_view expected) const;
  // "PLACE: MESSAGE".
  [[noreturn]] void fail(std::string_view message) const;

 private:
  const nlohmann::json* value_;
  std::string place_;
};

// The document in `text`. Throws DataError "FILE: byte N: ..." where it is not JSON.
nlohmann::json parse_json(std::string_view text, const std::string& file);

}  // namespace replayeval::datasets
