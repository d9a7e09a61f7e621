#include "eval/model/rotary_config.h"

#include <cmath>
#include <map>

namespace replayeval {
namespace {

// Of the rope parameters, whatever the kind; a kind ignores those that it has no use for.
const std::vector<std::string>& known_keys() {
  static const std::vector<std::string> keys = {"rope_type",
                                                "type",
                                                "rope_theta",
                                                "partial_rotary_factor",
                                                "factor",
                                                "attention_factor",
                                                "original_max_position_embeddings",
                                                "beta_fast",
                                                "beta_slow",
                                                "mscale",
                                                "mscale_all_dim",
                                                "truncate",
                                                "short_factor",
                                                "long_factor",
                                                "low_freq_factor",
                                                "high_freq_factor"};
  return keys;
}

double positive_number(ConfigReader& reader, const std::string& key, double fallback) {
  const double value = reader.number(key, fallback);
  if (!(value > 0.0) || std::isinf(value)) reader.fail(key, "a number above 0");
  return value;
}

RotaryKind read_kind(ConfigReader& parameters) {
  static const std::map<std::string, RotaryKind> kinds = {
      {"default", RotaryKind::standard}, {"linear", RotaryKind::linear},     {"dynamic", RotaryKind::dynamic},
      {"yarn", RotaryKind::yarn},        {"longrope", RotaryKind::longrope}, {"llama3", RotaryKind::llama3}};
  const std::string key = parameters.has("rope_type") ? "rope_type" : "type";
  const auto found = kinds.find(parameters.word(key, "default"));
  if (found == kinds.end()) parameters.fail(key, "default, linear, dynamic, yarn, longrope or llama3");
  return found->second;
}

// The share of a head that turns.
double read_partial(ConfigReader& reader, ConfigReader& parameters, const RotaryRules& rules, RotaryKind kind) {
  const std::string key = "partial_rotary_factor";
  reader.ignore({key});  // unless read below: one among the rope parameters wins
  if (rules.whole_heads && kind == RotaryKind::standard) return 1.0;
  const bool outside = rules.top_level_partial && !parameters.has(key);
  ConfigReader& place = outside ? reader : parameters;
  const double partial = place.number(key, rules.partial);
  if (rules.whole_heads && partial != 1.0)
    place.fail(key, "1: the published code turns whole heads with this rope_type");
  if (!(partial > 0.0 && partial <= 1.0)) place.fail(key, "a number above 0, at most 1");
  const auto dim = static_cast<std::int64_t>(static_cast<double>(rules.head_dim) * partial);
  if (dim < 2 || dim % 2 != 0)
    place.fail(key, "a share that turns an even number of a head's " + std::to_string(rules.head_dim) + " elements");
  return partial;
}

// What yarn multiplies the scores with, as its authors advise, unless the configuration says.
double yarn_attention_factor(ConfigReader& parameters, double factor) {
  const auto scale = [factor](double weight) { return factor <= 1.0 ? 1.0 : 0.1 * weight * std::log(factor) + 1.0; };
  const double mscale = parameters.number("mscale", 0.0), all_dim = parameters.number("mscale_all_dim", 0.0);
  const double advised = mscale != 0.0 && all_dim != 0.0 ? scale(mscale) / scale(all_dim) : scale(1.0);
  return positive_number(parameters, "attention_factor", advised);
}

void read_yarn(ConfigReader& parameters, RotaryConfig& config) {
  config.attention_factor = yarn_attention_factor(parameters, config.factor);
  const auto or_default = [&](const char* key, double fallback) {  // a zero counts as not given
    const double value = parameters.number(key, fallback);
    return value == 0.0 ? fallback : value;
  };
  config.beta_fast = or_default("beta_fast", config.beta_fast);
  config.beta_slow = or_default("beta_slow", config.beta_slow);
  if (!(config.beta_slow > 0.0 && config.beta_slow <= config.beta_fast) || std::isinf(config.beta_fast))
    parameters.fail(parameters.has("beta_slow") ? "beta_slow" : "beta_fast", "0 < beta_slow <= beta_fast");
  config.truncate = parameters.flag("truncate", true);
}

std::vector<double> read_factors(ConfigReader& parameters, const std::string& key, std::int64_t rotary_dim) {
  std::vector<double> factors = parameters.numbers(key, {});
  bool usable = factors.size() == static_cast<std::size_t>(rotary_dim / 2);
  for (const double factor : factors) usable = usable && factor > 0.0 && !std::isinf(factor);
  if (!usable) parameters.fail(key, std::to_string(rotary_dim / 2) + " numbers above 0");
  return factors;
}

void read_longrope(ConfigReader& parameters, RotaryConfig& config) {
  config.short_factor = read_factors(parameters, "short_factor", config.rotary_dim);
  config.long_factor = read_factors(parameters, "long_factor", config.rotary_dim);
  const double original = static_cast<double>(config.original_max_positions);
  const double advised = config.factor <= 1.0 ? 1.0 : std::sqrt(1.0 + std::log(config.factor) / std::log(original));
  config.attention_factor = positive_number(parameters, "attention_factor", advised);
}

void read_llama3(ConfigReader& parameters, RotaryConfig& config) {
  for (const char* key : {"low_freq_factor", "high_freq_factor"})
    if (!parameters.has(key)) parameters.fail(key, "a number: rope_type llama3 needs it");
  config.low_freq_factor = positive_number(parameters, "low_freq_factor", 1.0);
  config.high_freq_factor = positive_number(parameters, "high_freq_factor", 4.0);
  if (config.high_freq_factor <= config.low_freq_factor)
    parameters.fail("high_freq_factor", "more than low_freq_factor");
}

// The factor, and for the kinds that need it the length before the extension; one follows from the other.
void read_extension(ConfigReader& reader, ConfigReader& parameters, RotaryConfig& config) {
  const bool from_lengths = config.kind == RotaryKind::yarn || config.kind == RotaryKind::longrope;
  if (from_lengths || config.kind == RotaryKind::llama3) {
    // One beside the rope parameters wins, as the families that write it there want it.
    const std::string key = "original_max_position_embeddings";
    ConfigReader& place = reader.has(key) ? reader : parameters;
    config.original_max_positions = place.positive(key, config.max_positions);
    if (config.original_max_positions < 2) place.fail(key, "an integer of at least 2");
  }
  if (!from_lengths && !parameters.has("factor")) parameters.fail("factor", "a number above 0");
  const double ratio =
      from_lengths ? static_cast<double>(config.max_positions) / static_cast<double>(config.original_max_positions)
                   : 1.0;
  config.factor = positive_number(parameters, "factor", ratio);
}

void read_kind_parameters(ConfigReader& reader, ConfigReader& parameters, RotaryConfig& config) {
  if (config.kind == RotaryKind::standard) return;
  read_extension(reader, parameters, config);
  if (config.kind == RotaryKind::dynamic && config.rotary_dim < 4)
    parameters.fail("rope_type", "another one: dynamic needs at least 4 elements that turn");
  if (config.kind == RotaryKind::yarn) read_yarn(parameters, config);
  if (config.kind == RotaryKind::longrope) read_longrope(parameters, config);
  if (config.kind == RotaryKind::llama3) read_llama3(parameters, config);
}

}  // namespace

RotaryConfig read_rotary(ConfigReader& reader, const RotaryRules& rules) {
  // An old spelling that says anything wins over the new one.
  const bool old_spelling = !reader.nested("rope_scaling").empty();
  if (old_spelling) reader.ignore({"rope_parameters"});
  ConfigReader parameters = reader.nested(old_spelling ? "rope_scaling" : "rope_parameters");

  RotaryConfig config;
  config.kind = read_kind(parameters);
  const double beside = positive_number(reader, "rope_theta", 10000.0);
  config.theta = positive_number(parameters, "rope_theta", beside);
  if (config.theta <= 1.0) (parameters.has("rope_theta") ? parameters : reader).fail("rope_theta", "a number above 1");
  config.max_positions = rules.max_positions;
  config.rotary_dim = static_cast<std::int64_t>(static_cast<double>(rules.head_dim) *
                                                read_partial(reader, parameters, rules, config.kind));
  read_kind_parameters(reader, parameters, config);
  reader.ignore({"original_max_position_embeddings"});
  parameters.ignore(known_keys());
  parameters.ignore(rules.ignored);
  parameters.finish();
  return config;
}

}  // namespace replayeval
