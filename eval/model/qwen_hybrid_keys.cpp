#include "eval/model/qwen_hybrid_keys.h"

#include <algorithm>
#include <string>

#include "eval/model/common_keys.h"
#include "eval/model/delta_rule_keys.h"
#include "eval/model/layer_list.h"

namespace replayeval {
namespace {

std::vector<LayerKind> read_layers(ConfigReader& reader, std::int64_t otherwise) {
  const std::string list = "layer_types", interval_key = "full_attention_interval";
  if (reader.has(list)) {
    std::vector<LayerKind> layers = read_layer_names(reader, list, {LayerKind::gated_delta, LayerKind::attention});
    if (layers.empty()) reader.fail(list, "at least one layer");
    check_layer_count(reader, layers, list);
    reader.ignore({interval_key});
    return layers;
  }
  reader.ignore({list});  // null
  std::vector<LayerKind> layers = read_layer_count(reader, LayerKind::gated_delta, otherwise);
  const auto interval = static_cast<std::size_t>(reader.positive(interval_key, 4));
  for (std::size_t i = interval - 1; i < layers.size(); i += interval) layers[i] = LayerKind::attention;
  return layers;
}

void read_attention(ConfigReader& reader, std::int64_t num_kv_heads, QwenHybridConfig& config) {
  Architecture& architecture = config.architecture;
  if (architecture.count(LayerKind::attention) == 0) {
    reader.ignore({"num_attention_heads", "num_key_value_heads", "head_dim", "attention_bias", "rope_theta",
                   "rope_scaling", "rope_parameters", "partial_rotary_factor", "original_max_position_embeddings"});
    return;
  }
  read_attention_heads(reader, architecture, {16, num_kv_heads});
  architecture.head_dim = reader.positive("head_dim", 256);
  config.attention_bias = reader.flag("attention_bias", false);
  RotaryRules rules;
  rules.head_dim = architecture.head_dim;
  rules.max_positions = architecture.max_positions;
  rules.partial = 0.25;
  // Which of a position's three coordinates turns which element: in text they are equal.
  rules.ignored = {"mrope_section", "mrope_interleaved"};
  config.rotary = read_rotary(reader, rules);
}

}  // namespace

void read_qwen_hybrid(ConfigReader& reader, const QwenHybridDefaults& defaults, QwenHybridConfig& config) {
  Architecture& architecture = config.architecture;
  architecture.vocab_size = reader.positive("vocab_size", defaults.vocab_size);
  architecture.hidden_size = reader.positive("hidden_size", defaults.hidden_size);
  architecture.max_positions = reader.positive("max_position_embeddings", 32768);
  architecture.layers = read_layers(reader, defaults.layers);
  read_attention(reader, defaults.num_kv_heads, config);
  read_delta_sizes(reader, {}, architecture);
  reader.require("hidden_act", {"silu", "swish"}, "other activations are not supported");
  config.norm_eps = read_norm_eps(reader, "rms_norm_eps", 1e-6);
  config.tie_word_embeddings = reader.flag("tie_word_embeddings", false);
  // Not looked at by the published code: it has no such window, and the type that servers keep the state in is an
  // arm's.
  reader.ignore({"use_sliding_window", "sliding_window", "max_window_layers", "mamba_ssm_dtype"});
  reader.require("attn_output_gate", {true}, "attention without a gated output is not supported");
  reader.require("output_gate_type", {"swish", "silu"}, "other gates behind the recurrence are not supported");
  ignore_common_keys(reader);
}

void read_qwen_feed_forward(ConfigReader& reader, const QwenHybridDefaults& defaults, std::int64_t intermediate_size,
                            QwenHybridConfig& config) {
  Architecture& architecture = config.architecture;
  const auto experts_in = [&](bool any) {
    return std::find(config.mixtures.begin(), config.mixtures.end(), any) != config.mixtures.end();
  };
  if (experts_in(false))
    architecture.intermediate_size = reader.positive("intermediate_size", intermediate_size);
  else
    reader.ignore({"intermediate_size"});
  if (!experts_in(true)) {
    reader.ignore({"num_experts", "num_experts_per_tok", "moe_intermediate_size", "shared_expert_intermediate_size",
                   "norm_topk_prob"});
    return;
  }
  MixtureShape& mixture = architecture.mixture;
  mixture.experts = reader.positive("num_experts", defaults.experts);
  mixture.chosen = reader.positive("num_experts_per_tok", defaults.experts_per_token);
  if (mixture.chosen > mixture.experts)
    reader.fail("num_experts_per_tok", "at most num_experts (" + std::to_string(mixture.experts) + ")");
  mixture.intermediate_size = reader.positive("moe_intermediate_size", 512);
  mixture.shared_intermediate_size = reader.positive("shared_expert_intermediate_size", 512);
}

}  // namespace replayeval
