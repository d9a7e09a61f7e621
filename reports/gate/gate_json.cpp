#include "reports/gate/gate_json.h"

#include "reports/json_schema.h"
#include "reports/results_schema.h"

namespace replayeval::reports::gate {
namespace {

using nlohmann::json;

json write(const Rule& rule) {
  json object = {{"name", rule.name},
                 {"metric", rule.metric},
                 {"confidence", rule.confidence},
                 {"inconclusive", name_of(rule.inconclusive)},
                 {"compare", rule.compare == Compare::value ? "value" : "interval"},
                 {"against", rule.against == Against::release ? "release" : "baseline"},
                 {"pool", name_of(rule.pool)}};
  if (rule.margin.at_least) object["at_least"] = *rule.margin.at_least;
  if (rule.margin.at_most) object["at_most"] = *rule.margin.at_most;
  return object;
}

json write(const Judgement& judgement) {
  const Measurement& measured = judgement.measured;
  json object = {
      {"rule", write(judgement.rule)}, {"workload", measured.workload},   {"arm", measured.arm},
      {"metric", measured.metric},     {"word", name_of(judgement.word)}, {"effect", name_of(judgement.effect)},
      {"message", sentence(judgement)}};
  if (judgement.word == Word::unusable) return object;
  object["value"] = measured.value;
  if (measured.interval) {
    object["low"] = measured.interval->low;
    object["high"] = measured.interval->high;
  }
  if (measured.confidence) object["confidence"] = *measured.confidence;
  if (measured.n) {
    object["n"] = *measured.n;
    object["unit"] = measured.unit;
  }
  if (!measured.method.empty()) object["method"] = measured.method;
  if (judgement.needed) object["needed"] = *judgement.needed;
  return object;
}

}  // namespace

void validate_gate(const json& outcome, const std::string& place) {
  static const JsonSchema schema(gate_schema_text());
  schema.validate(outcome, place);
}

json to_json(const Outcome& outcome) {
  json object = {{"schema_version", 1},
                 {"policy", outcome.policy},
                 {"exit_code", outcome.exit_code()},
                 {"judgements", json::array()},
                 {"warnings", outcome.warnings}};
  for (const Judgement& judgement : outcome.judgements) object["judgements"].push_back(write(judgement));
  validate_gate(object);
  return object;
}

}  // namespace replayeval::reports::gate
