// valijson finds the fault, then schema and value say what it is in our own words.
#include "reports/json_schema.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <valijson/adapters/nlohmann_json_adapter.hpp>
#include <valijson/schema.hpp>
#include <valijson/schema_parser.hpp>
#include <valijson/validator.hpp>

#include "reports/results_io.h"

namespace replayeval::reports {

using nlohmann::json;

struct JsonSchema::Parsed {
  json text;
  valijson::Schema schema;
  explicit Parsed(const char* source) : text(json::parse(source)) {
    valijson::SchemaParser parser(valijson::SchemaParser::kDraft7);
    parser.populateSchema(valijson::adapters::NlohmannJsonAdapter(text), schema);
  }
};

namespace {

// valijson's path: "<root>", "[workloads]", "[0]", ...
std::vector<std::string> steps_of(const std::vector<std::string>& context) {
  std::vector<std::string> steps;
  for (const std::string& step : context) {
    if (step.size() >= 2 && step.front() == '[' && step.back() == ']') steps.push_back(step.substr(1, step.size() - 2));
  }
  return steps;
}

const json& resolved(const json& schema, const json& node) {
  const auto reference = node.find("$ref");
  if (reference == node.end()) return node;
  return schema.at(json::json_pointer(reference->get<std::string>().substr(1)));  // "#/definitions/..."
}

// The part of the schema that governs the value at `steps`.
const json& rule_for(const json& schema, const std::vector<std::string>& steps) {
  static const json anything = json::object();
  const json* node = &schema;
  for (const std::string& step : steps) {
    const json& rule = resolved(schema, *node);
    if (rule.contains("properties") && rule["properties"].contains(step)) {
      node = &rule["properties"][step];
    } else if (rule.contains("additionalProperties") && rule["additionalProperties"].is_object()) {
      node = &rule["additionalProperties"];
    } else if (rule.contains("items")) {
      node = &rule["items"];
    } else {
      return anything;
    }
  }
  return resolved(schema, *node);
}

const json& value_at(const json& root, const std::vector<std::string>& steps) {
  const json* node = &root;
  for (const std::string& step : steps) {
    node = node->is_array() ? &node->at(std::stoul(step)) : &node->at(step);
  }
  return *node;
}

std::string brief(const json& value) {
  std::string text = value.dump(-1, ' ', false, json::error_handler_t::replace);
  constexpr std::size_t longest = 60;
  return text.size() <= longest ? text : text.substr(0, longest) + " …";
}

std::string expectation(const json& rule) {
  std::string text = rule.value("type", std::string("another value"));
  if (rule.contains("enum")) text += fmt::format(", one of {}", rule["enum"].dump());
  if (rule.contains("minimum")) text += fmt::format(", at least {}", rule["minimum"].dump());
  if (rule.contains("maximum")) text += fmt::format(", at most {}", rule["maximum"].dump());
  if (rule.contains("pattern")) text += fmt::format(" matching {}", rule["pattern"].get<std::string>());
  if (rule.contains("minLength")) text += ", not empty";
  if (rule.contains("minItems")) text += ", not empty";
  if (rule.contains("description")) text += fmt::format(" ({})", rule["description"].get<std::string>());
  return text;
}

// What is wrong with the keys of an object, or "".
std::string key_fault(const json& rule, const json& value) {
  if (!value.is_object()) return "";
  for (const json& key : rule.value("required", json::array())) {
    if (!value.contains(key.get<std::string>())) return fmt::format("key {} is missing", key.dump());
  }
  const json dependencies = rule.value("dependencies", json::object());
  for (const auto& [key, needed] : dependencies.items()) {
    for (const json& other : needed) {
      if (value.contains(key) && !value.contains(other.get<std::string>())) {
        return fmt::format("key {} is missing, which belongs to \"{}\"", other.dump(), key);
      }
    }
  }
  if (rule.contains("additionalProperties") && rule["additionalProperties"] == false) {
    std::vector<std::string> known;
    for (const auto& [key, unused] : rule["properties"].items()) known.push_back(key);
    for (const auto& [key, unused] : value.items()) {
      if (!rule["properties"].contains(key)) {
        return fmt::format("unknown key \"{}\"; expected one of {}", key, fmt::join(known, ", "));
      }
    }
  }
  return "";
}

std::string describe(const json& schema, const json& root, const valijson::ValidationResults::Error& error) {
  const std::vector<std::string> steps = steps_of(error.context);
  const json& rule = rule_for(schema, steps);
  const json& value = value_at(root, steps);
  const std::string fault = key_fault(rule, value);
  return fmt::format("/{}: {}", fmt::join(steps, "/"),
                     fault.empty() ? fmt::format("found {}, expected {}", brief(value), expectation(rule)) : fault);
}

}  // namespace

JsonSchema::JsonSchema(const char* text) : parsed_(std::make_unique<const Parsed>(text)) {}
JsonSchema::~JsonSchema() = default;

void JsonSchema::validate(const json& object, const std::string& place) const {
  valijson::Validator validator;
  valijson::ValidationResults faults;
  if (validator.validate(parsed_->schema, valijson::adapters::NlohmannJsonAdapter(object), &faults)) return;
  const valijson::ValidationResults::Error* deepest = nullptr;  // its ancestors are faulty only because it is
  for (const auto& fault : faults) {
    if (deepest == nullptr || fault.context.size() > deepest->context.size()) deepest = &fault;
  }
  throw ResultsError(fmt::format(
      "{}: {}", place,
      deepest != nullptr ? describe(parsed_->text, object, *deepest) : std::string("does not match the schema")));
}

}  // namespace replayeval::reports
