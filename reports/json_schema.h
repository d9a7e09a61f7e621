// JSON held against a schema: the fault as one line in our own words.
#pragma once

#include <nlohmann/json.hpp>

#include <memory>
#include <string>

namespace replayeval::reports {

class JsonSchema {
 public:
  explicit JsonSchema(const char* text);  // JSON Schema, draft 7
  ~JsonSchema();
  // Throws ResultsError with the first fault: `place`, a JSON pointer, what was found and what was expected.
  void validate(const nlohmann::json& object, const std::string& place) const;

 private:
  struct Parsed;
  std::unique_ptr<const Parsed> parsed_;
};

}  // namespace replayeval::reports
