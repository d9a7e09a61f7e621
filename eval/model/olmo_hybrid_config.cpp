#include "eval/model/olmo_hybrid_config.h"

#include <algorithm>

#include "eval/model/common_keys.h"
#include "eval/model/config_reader.h"
#include "eval/model/delta_rule_keys.h"
#include "eval/model/layer_list.h"

namespace replayeval {
namespace {

// layer_types, or attention at every fourth layer and, where that is none, at the last.
std::vector<LayerKind> read_layers(ConfigReader& reader) {
  const std::string key = "layer_types";
  if (reader.has(key)) {
    std::vector<LayerKind> layers = read_layer_names(reader, key, {LayerKind::gated_delta, LayerKind::attention});
    if (layers.empty()) reader.fail(key, "at least one layer");
    check_layer_count(reader, layers, key);
    return layers;
  }
  reader.ignore({key});  // null
  std::vector<LayerKind> layers = read_layer_count(reader, LayerKind::gated_delta);
  for (std::size_t i = 3; i < layers.size(); i += 4) layers[i] = LayerKind::attention;
  if (layers.size() < 4) layers.back() = LayerKind::attention;
  return layers;
}

// As many heads as attention has, of three quarters of their width for keys and twice that for values, unless
// config.json says.
void read_mixers(ConfigReader& reader, OlmoHybridConfig& config) {
  Architecture& architecture = config.architecture;
  DeltaSizeDefaults defaults;
  defaults.num_key_heads = defaults.num_value_heads = architecture.num_heads;
  const std::int64_t key_heads = reader.positive("linear_num_key_heads", architecture.num_heads);
  defaults.key_dim = std::max<std::int64_t>(1, 3 * architecture.hidden_size / (4 * key_heads));
  defaults.value_dim = 2 * reader.positive("linear_key_head_dim", defaults.key_dim);
  read_delta_sizes(reader, defaults, architecture);
  config.allow_neg_eigval = reader.flag("linear_allow_neg_eigval", true);
  reader.require("linear_use_gate", {true}, "the published code always gates the mixer's output");
  reader.ignore({"linear_a_log_min", "linear_a_log_max", "linear_dt_min", "linear_dt_max", "linear_dt_init_floor"});
}

// Only a null that is written down means no positions: in the rope parameters, or beside them where they have none.
bool has_positions(ConfigReader& reader) {
  const std::string key = "rope_theta";
  const bool old_spelling = !reader.nested("rope_scaling").empty();
  const ConfigReader parameters = reader.nested(old_spelling ? "rope_scaling" : "rope_parameters");
  const ConfigReader& place = parameters.present(key) ? parameters : reader;
  return place.has(key) || !place.present(key);
}

void read_attention(ConfigReader& reader, OlmoHybridConfig& config) {
  const Architecture& architecture = config.architecture;
  config.attention_bias = reader.flag("attention_bias", false);
  if (!has_positions(reader)) {
    reader.ignore({"rope_theta", "rope_scaling", "rope_parameters", "partial_rotary_factor"});
    return;
  }
  RotaryRules rules;
  rules.head_dim = architecture.head_dim;
  rules.max_positions = architecture.max_positions;
  rules.whole_heads = true;
  config.rotary = read_rotary(reader, rules);
}

}  // namespace

OlmoHybridConfig read_olmo_hybrid_config(const Checkpoint& checkpoint) {
  ConfigReader reader(checkpoint);
  OlmoHybridConfig config;
  Architecture& architecture = config.architecture;
  architecture.model_type = reader.word("model_type", "");
  architecture.vocab_size = reader.positive("vocab_size");
  architecture.hidden_size = reader.positive("hidden_size");
  architecture.max_positions = reader.positive("max_position_embeddings", 65536);
  architecture.layers = read_layers(reader);
  read_attention_sizes(reader, architecture);
  read_mixers(reader, config);
  read_attention(reader, config);
  architecture.intermediate_size = reader.positive("intermediate_size");
  reader.require("hidden_act", {"silu", "swish"}, "other activations are not supported");
  config.norm_eps = read_norm_eps(reader, "rms_norm_eps", 1e-6);
  config.tie_word_embeddings = reader.flag("tie_word_embeddings", false);
  reader.ignore({"pretraining_tp", "mlp_bias"});  // of the configuration that this one is derived from
  ignore_common_keys(reader);
  finish_keys(reader, architecture);
  return config;
}

}  // namespace replayeval
