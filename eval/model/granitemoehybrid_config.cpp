#include "eval/model/granitemoehybrid_config.h"

#include "eval/model/common_keys.h"
#include "eval/model/config_reader.h"
#include "eval/model/layer_list.h"

namespace replayeval {
namespace {

void read_attention(ConfigReader& reader, GraniteMoeHybridConfig& config) {
  Architecture& architecture = config.architecture;
  read_attention_sizes(reader, architecture);
  config.attention_bias = reader.flag("attention_bias", false);
  config.attention_multiplier = read_finite(reader, "attention_multiplier", 1.0);
  RotaryRules rules;
  rules.head_dim = architecture.head_dim;
  rules.max_positions = architecture.max_positions;
  rules.whole_heads = true;
  // The published code rotates for this word only; published folders write "nope" for its absence.
  if (reader.says("position_embedding_type", "rope"))
    config.rotary = read_rotary(reader, rules);
  else
    reader.ignore({"rope_theta", "rope_scaling", "rope_parameters", "partial_rotary_factor"});
}

void read_feed_forward(ConfigReader& reader, GraniteMoeHybridConfig& config) {
  Architecture& architecture = config.architecture;
  MixtureShape& mixture = architecture.mixture;
  reader.require("hidden_act", {"silu", "swish"}, "other activations are not supported");
  const bool dense = reader.says("num_local_experts", 0), alone = reader.says("shared_intermediate_size", 0);
  const std::int64_t shared = alone ? 0 : reader.positive("shared_intermediate_size", 1024);
  if (dense && alone) reader.fail("shared_intermediate_size", "at least 1, as there are no experts");
  if (dense) {
    architecture.intermediate_size = shared;
    reader.ignore({"intermediate_size", "num_experts_per_tok"});
    return;
  }
  mixture.experts = reader.positive("num_local_experts", 8);
  mixture.chosen = reader.positive("num_experts_per_tok", 2);
  if (mixture.chosen > mixture.experts)
    reader.fail("num_experts_per_tok", "at most num_local_experts (" + std::to_string(mixture.experts) + ")");
  mixture.intermediate_size = reader.positive("intermediate_size");
  mixture.shared_intermediate_size = shared;
}

void read_multipliers(ConfigReader& reader, GraniteMoeHybridConfig& config) {
  config.embedding_multiplier = read_finite(reader, "embedding_multiplier", 1.0);
  config.residual_multiplier = read_finite(reader, "residual_multiplier", 1.0);
  config.logits_scaling = read_finite(reader, "logits_scaling", 1.0);
  if (config.logits_scaling == 0.0) reader.fail("logits_scaling", "a number other than 0");
}

}  // namespace

GraniteMoeHybridConfig read_granitemoehybrid_config(const Checkpoint& checkpoint) {
  ConfigReader reader(checkpoint);
  GraniteMoeHybridConfig config;
  Architecture& architecture = config.architecture;
  architecture.model_type = reader.word("model_type", "");
  architecture.vocab_size = reader.positive("vocab_size");
  architecture.hidden_size = reader.positive("hidden_size");
  architecture.max_positions = reader.positive("max_position_embeddings", 2048);
  architecture.layers = read_mixer_list(reader, LayerKind::mamba2);
  config.mamba = read_mamba_keys(reader, architecture);
  if (architecture.count(LayerKind::attention) != 0)
    read_attention(reader, config);
  else
    reader.ignore({"num_attention_heads", "num_key_value_heads", "head_dim", "attention_bias", "attention_multiplier",
                   "position_embedding_type", "rope_theta", "rope_scaling", "rope_parameters",
                   "partial_rotary_factor"});
  read_feed_forward(reader, config);
  read_multipliers(reader, config);
  config.norm_eps = read_norm_eps(reader, "rms_norm_eps", 1e-6);
  config.tie_word_embeddings = reader.flag("tie_word_embeddings", false);
  reader.require("normalization_function", {"rmsnorm"}, "other norms are not supported");
  reader.ignore({"init_method"});
  ignore_common_keys(reader);
  finish_keys(reader, architecture);
  return config;
}

}  // namespace replayeval
