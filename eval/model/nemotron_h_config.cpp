#include "eval/model/nemotron_h_config.h"

#include "eval/model/common_keys.h"
#include "eval/model/config_reader.h"
#include "eval/model/layer_list.h"
#include "eval/model/router_keys.h"

namespace replayeval {
namespace {

// Keys that stand in published folders but that the code of this type does not look at, beside the common ones: what
// does nothing (expand, rope_theta, sliding_window, ...), initialisation, and multi-token prediction.
void ignore_unread_keys(ConfigReader& reader) {
  ignore_common_keys(reader);
  reader.ignore({"rescale_prenorm_residual",
                 "chunk_size",
                 "mamba_chunk_size",
                 "use_mamba_kernels",
                 "mamba_ssm_cache_dtype",
                 "expand",
                 "mamba_expand",
                 "mamba_proj_bias",
                 "attention_bias",
                 "sliding_window",
                 "time_step_max",
                 "mamba_dt_max",
                 "time_step_floor",
                 "mamba_dt_init_floor",
                 "rms_norm_eps",
                 "norm_eps",
                 "rope_theta",
                 "partial_rotary_factor",
                 "n_shared_experts",
                 "moe_shared_expert_overlap",
                 "num_nextn_predict_layers",
                 "mtp_layers_block_type",
                 "mtp_hybrid_override_pattern"});
}

// The key's name that this folder uses; transformers prefers `other` where both stand.
std::string either(ConfigReader& reader, const std::string& key, const std::string& other) {
  const bool both_or_other = reader.has(other);
  reader.ignore({both_or_other ? key : other});
  return both_or_other ? other : key;
}

std::vector<LayerKind> read_pattern(ConfigReader& reader) {
  const std::string key = "hybrid_override_pattern";
  std::vector<LayerKind> layers;
  for (const char letter : reader.word(key, "")) {
    if (letter == 'M')
      layers.push_back(LayerKind::mamba2);
    else if (letter == '*')
      layers.push_back(LayerKind::attention);
    else if (letter == '-')
      layers.push_back(LayerKind::mlp);
    else if (letter == 'E')
      layers.push_back(LayerKind::moe);
    else
      reader.fail(key,
                  std::string("only M, *, - and E; found '") + letter + "' at layer " + std::to_string(layers.size()));
  }
  return layers;
}

// transformers' own precedence: an explicit list wins over the pattern. num_hidden_layers must agree, as in the
// published configuration code; transformers takes the list and warns.
std::vector<LayerKind> read_layers(ConfigReader& reader) {
  const std::vector<LayerKind> kinds = {LayerKind::mamba2, LayerKind::attention, LayerKind::mlp, LayerKind::moe};
  std::vector<LayerKind> layers;
  std::string key = "hybrid_override_pattern";
  for (const char* list : {"layers_block_type", "layer_types"})
    if (layers.empty() && reader.has(list)) layers = read_layer_names(reader, key = list, kinds);
  const std::vector<LayerKind> pattern = read_pattern(reader);
  if (layers.empty()) layers = pattern;
  if (layers.empty()) reader.fail(key, "the layers, as a pattern of M, *, - and E or as a list");
  if (!pattern.empty() && pattern != layers) reader.fail(key, "the same layers as hybrid_override_pattern gives");
  check_layer_count(reader, layers, key);
  return layers;
}

void read_mamba(ConfigReader& reader, NemotronHConfig& config) {
  const MambaSizeKeys keys = {"mamba_num_heads", either(reader, "n_groups", "mamba_n_groups"), "mamba_head_dim",
                              "ssm_state_size", either(reader, "conv_kernel", "mamba_d_conv")};
  mamba2::Shape& shape = config.architecture.mamba;
  shape.num_heads = reader.positive(keys.num_heads);
  shape.num_groups = reader.positive(keys.num_groups);
  shape.head_dim = reader.positive(keys.head_dim);
  shape.state_size = reader.positive(keys.state_size);
  config.architecture.conv_kernel = reader.positive(keys.conv_kernel, 4);
  check_mamba_sizes(reader, keys, shape, config.architecture.conv_kernel);
  config.architecture.norm_group_size = norm_of_each_group(shape);
  reader.require("mamba_hidden_act", {"silu", "swish"}, "other activations are not supported");
  config.use_bias = reader.flag("use_bias", false);
  config.use_conv_bias = reader.flag(either(reader, "use_conv_bias", "mamba_conv_bias"), true);
  config.time_step_limit = read_time_step_limit(reader, either(reader, "time_step_limit", "mamba_dt_limit"));
  const std::string floor = either(reader, "time_step_min", "mamba_dt_min");
  config.time_step_min = read_finite(reader, floor, 0.001);
  if (config.time_step_min < 0.0) reader.fail(floor, "a number of at least 0");
}

void read_attention(ConfigReader& reader, NemotronHConfig& config) {
  Architecture& architecture = config.architecture;
  read_attention_heads(reader, architecture);
  // The first published configurations say attention_head_dim.
  architecture.head_dim = reader.positive("head_dim", reader.positive("attention_head_dim", 128));
}

void read_mixture(ConfigReader& reader, NemotronHConfig& config) {
  const std::string experts = reader.has("n_routed_experts") ? "n_routed_experts" : "num_local_experts";
  MixtureShape& shape = config.architecture.mixture;
  shape.experts = reader.positive(experts);
  if (reader.positive("num_local_experts", shape.experts) != shape.experts)
    reader.fail("num_local_experts", "the same number as n_routed_experts");
  shape.intermediate_size = reader.positive("moe_intermediate_size");
  shape.shared_intermediate_size = reader.positive("moe_shared_expert_intermediate_size");
  if (reader.has("moe_latent_size"))
    shape.latent_size = reader.positive("moe_latent_size");
  else
    reader.ignore({"moe_latent_size"});  // null
  read_sigmoid_router(reader, experts, {}, {}, shape, config.router);
}

void read_feed_forward(ConfigReader& reader, NemotronHConfig& config) {
  Architecture& architecture = config.architecture;
  if (architecture.count(LayerKind::mlp) != 0) architecture.intermediate_size = reader.positive("intermediate_size");
  if (architecture.count(LayerKind::moe) != 0) read_mixture(reader, config);
  reader.require("mlp_hidden_act", {"relu2"}, "other activations are not supported");
  config.mlp_bias = reader.flag("mlp_bias", false);
}

// Accounts for the keys of a layer kind that the pattern does not use without demanding that they make sense.
void ignore_unused(ConfigReader& reader, const Architecture& architecture) {
  const bool mlp = architecture.count(LayerKind::mlp) != 0, moe = architecture.count(LayerKind::moe) != 0;
  if (architecture.count(LayerKind::mamba2) == 0)
    reader.ignore({"mamba_num_heads", "n_groups", "mamba_n_groups", "mamba_head_dim", "ssm_state_size", "conv_kernel",
                   "mamba_d_conv", "mamba_hidden_act", "use_bias", "use_conv_bias", "mamba_conv_bias",
                   "time_step_limit", "mamba_dt_limit", "time_step_min", "mamba_dt_min"});
  if (architecture.count(LayerKind::attention) == 0)
    reader.ignore({"num_attention_heads", "num_key_value_heads", "head_dim", "attention_head_dim"});
  if (!mlp) reader.ignore({"intermediate_size"});
  if (!moe)
    reader.ignore({"n_routed_experts", "num_local_experts", "moe_intermediate_size",
                   "moe_shared_expert_intermediate_size", "moe_latent_size", "num_experts_per_tok",
                   "routed_scaling_factor", "n_group", "topk_group", "norm_topk_prob"});
  if (!mlp && !moe) reader.ignore({"mlp_hidden_act", "mlp_bias"});
}

}  // namespace

NemotronHConfig read_nemotron_h_config(const Checkpoint& checkpoint) {
  ConfigReader reader(checkpoint);
  NemotronHConfig config;
  Architecture& architecture = config.architecture;
  architecture.model_type = reader.word("model_type", "");
  architecture.layers = read_layers(reader);
  architecture.vocab_size = reader.positive("vocab_size");
  architecture.hidden_size = reader.positive("hidden_size");
  architecture.max_positions = reader.positive("max_position_embeddings", 4096);
  if (architecture.count(LayerKind::mamba2) != 0) read_mamba(reader, config);
  if (architecture.count(LayerKind::attention) != 0) read_attention(reader, config);
  if (architecture.count(LayerKind::mlp) + architecture.count(LayerKind::moe) != 0) read_feed_forward(reader, config);
  config.norm_eps = read_norm_eps(reader, "layer_norm_epsilon", 1e-5);
  config.residual_in_fp32 = reader.flag("residual_in_fp32", false);
  config.tie_word_embeddings = reader.flag("tie_word_embeddings", false);
  ignore_unused(reader, architecture);
  ignore_unread_keys(reader);
  finish_keys(reader, architecture);
  return config;
}

}  // namespace replayeval
