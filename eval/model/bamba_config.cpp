#include "eval/model/bamba_config.h"

#include <cmath>

#include "eval/model/common_keys.h"
#include "eval/model/config_reader.h"
#include "eval/model/layer_list.h"

namespace replayeval {
namespace {

// Mamba-2 everywhere but at attn_layer_indices. A list of names, where one is written beside it, must agree.
std::vector<LayerKind> read_layers(ConfigReader& reader) {
  std::vector<LayerKind> layers = read_layer_count(reader, LayerKind::mamba2);
  const std::string key = "attn_layer_indices";
  for (const double index : reader.numbers(key, {})) {
    if (index < 0.0 || index >= static_cast<double>(layers.size()) || index != std::floor(index))
      reader.fail(key, "integers from 0 to num_hidden_layers - 1 (" + std::to_string(layers.size() - 1) + ")");
    layers[static_cast<std::size_t>(index)] = LayerKind::attention;
  }
  for (const char* list : {"layer_types", "layers_block_type"})
    if (reader.has(list) && read_layer_names(reader, list, {LayerKind::mamba2, LayerKind::attention}) != layers)
      reader.fail(list, "the same layers as attn_layer_indices gives");
  return layers;
}

void read_attention(ConfigReader& reader, BambaConfig& config) {
  read_attention_sizes(reader, config.architecture);
  config.attention_bias = reader.flag("attention_bias", false);
  RotaryRules rules;
  rules.head_dim = config.architecture.head_dim;
  rules.max_positions = config.architecture.max_positions;
  rules.partial = 0.5;
  rules.top_level_partial = false;
  config.rotary = read_rotary(reader, rules);
}

void read_mixers(ConfigReader& reader, BambaConfig& config) {
  Architecture& architecture = config.architecture;
  config.mamba = read_mamba_keys(reader, architecture);
  if (architecture.count(LayerKind::attention) != 0)
    read_attention(reader, config);
  else
    reader.ignore({"num_attention_heads", "num_key_value_heads", "head_dim", "attention_bias", "rope_theta",
                   "rope_scaling", "rope_parameters", "partial_rotary_factor"});
}

}  // namespace

BambaConfig read_bamba_config(const Checkpoint& checkpoint) {
  ConfigReader reader(checkpoint);
  BambaConfig config;
  Architecture& architecture = config.architecture;
  architecture.model_type = reader.word("model_type", "");
  architecture.vocab_size = reader.positive("vocab_size");
  architecture.hidden_size = reader.positive("hidden_size");
  architecture.max_positions = reader.positive("max_position_embeddings", 262144);
  architecture.layers = read_layers(reader);
  read_mixers(reader, config);
  architecture.intermediate_size = reader.positive("intermediate_size");
  reader.require("hidden_act", {"silu", "swish"}, "other activations are not supported");
  config.mlp_bias = reader.flag("mlp_bias", false);
  config.norm_eps = read_norm_eps(reader, "rms_norm_eps", 1e-5);
  config.tie_word_embeddings = reader.flag("tie_word_embeddings", false);
  reader.ignore({"z_loss_coefficient"});  // of training
  ignore_common_keys(reader);
  finish_keys(reader, architecture);
  return config;
}

}  // namespace replayeval
