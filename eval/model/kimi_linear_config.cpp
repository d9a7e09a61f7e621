#include "eval/model/kimi_linear_config.h"

#include <array>
#include <cmath>
#include <string>

#include "eval/model/common_keys.h"
#include "eval/model/config_reader.h"
#include "eval/model/delta_rule_keys.h"
#include "eval/model/layer_list.h"
#include "eval/model/router_keys.h"

namespace replayeval {
namespace {

// The layers by two lists of their numbers, which count from 1 and name every layer once.
std::vector<LayerKind> read_numbered_layers(ConfigReader& linear, std::size_t count) {
  std::vector<LayerKind> layers(count, LayerKind::kda);
  std::vector<bool> named(count, false);
  const auto read = [&](const std::string& key, LayerKind kind) {
    for (const double number : linear.numbers(key, {})) {
      if (number < 1.0 || number > static_cast<double>(count) || number != std::floor(number))
        linear.fail(key, "integers from 1 to num_hidden_layers (" + std::to_string(count) + ")");
      const auto index = static_cast<std::size_t>(number) - 1;
      if (named[index]) linear.fail(key, "every layer once; found " + std::to_string(index + 1) + " again");
      named[index] = true;
      layers[index] = kind;
    }
  };
  read("full_attn_layers", LayerKind::attention);
  read("kda_layers", LayerKind::kda);
  for (std::size_t i = 0; i < count; ++i)
    if (!named[i])
      linear.fail("kda_layers", "every layer that full_attn_layers lacks; not found: " + std::to_string(i + 1));
  return layers;
}

// layer_types, or the numbered lists, or attention at every fourth layer from the fifth on.
std::vector<LayerKind> read_layers(ConfigReader& reader, ConfigReader& linear) {
  std::vector<LayerKind> layers = read_layer_count(reader, LayerKind::kda);
  for (std::size_t i = 4; i < layers.size(); i += 4) layers[i] = LayerKind::attention;
  const bool numbered = linear.has("full_attn_layers") && linear.has("kda_layers");
  if (numbered) layers = read_numbered_layers(linear, layers.size());
  linear.ignore({"full_attn_layers", "kda_layers"});  // one alone does nothing
  const std::string key = "layer_types";
  if (!reader.has(key)) {
    reader.ignore({key});
    return layers;
  }
  const std::vector<LayerKind> names = read_layer_names(reader, key, {LayerKind::kda, LayerKind::attention});
  check_layer_count(reader, names, key);
  if (numbered && names != layers) reader.fail(key, "the same layers as linear_attn_config gives");
  return names;
}

// mlp_layer_types, or MLPs in the first first_k_dense_replace layers.
std::vector<bool> read_sparse_layers(ConfigReader& reader, std::size_t count) {
  std::vector<bool> sparse(count, true);
  const std::string dense_key = "first_k_dense_replace", key = "mlp_layer_types";
  const std::int64_t dense = reader.says(dense_key, 0) ? 0 : reader.positive(dense_key, 1);
  for (std::size_t i = 0; i < count && static_cast<std::int64_t>(i) < dense; ++i) sparse[i] = false;
  if (!reader.has(key)) {
    reader.ignore({key});
    return sparse;
  }
  const std::vector<std::string> names = reader.words(key);
  if (names.size() != count) reader.fail(key, "num_hidden_layers (" + std::to_string(count) + ") names");
  std::vector<bool> named;
  for (const std::string& name : names) {
    if (name != "dense" && name != "sparse")
      reader.fail(key, "only dense and sparse; found \"" + name + "\" at layer " + std::to_string(named.size()));
    named.push_back(name == "sparse");
  }
  if (reader.has(dense_key) && named != sparse) reader.fail(key, "the same layers as first_k_dense_replace gives");
  return named;
}

// The sizes stand in linear_attn_config, in newer folders beside it; those inside win.
void read_mixers(ConfigReader& reader, ConfigReader& linear, Architecture& architecture) {
  const std::array<std::string, 3> inside = {"num_heads", "head_dim", "short_conv_kernel_size"};
  const std::array<std::string, 3> beside = {"linear_num_heads", "linear_head_dim", "linear_conv_kernel_dim"};
  if (!architecture.has_delta_rule()) {
    linear.ignore({inside[0], inside[1], inside[2]});
    reader.ignore({beside[0], beside[1], beside[2]});
    return;
  }
  const auto size = [&](std::size_t i, std::int64_t fallback) {
    return linear.positive(inside[i], reader.positive(beside[i], fallback));
  };
  const auto check = [&](auto check_size, std::size_t i, std::int64_t value) {
    const bool is_inside = linear.has(inside[i]);
    check_size(is_inside ? linear : reader, is_inside ? inside[i] : beside[i], value);
  };
  delta_rule::Shape& shape = architecture.delta;
  shape.num_key_heads = shape.num_value_heads = size(0, 32);
  shape.key_dim = shape.value_dim = size(1, 128);
  architecture.conv_kernel = size(2, 4);
  check(check_delta_head_dim, 1, shape.key_dim);
  check(check_delta_conv_kernel, 2, architecture.conv_kernel);
}

void read_attention(ConfigReader& reader, KimiLinearConfig& config) {
  Architecture& architecture = config.architecture;
  if (architecture.count(LayerKind::attention) == 0) {
    reader.ignore({"num_attention_heads", "num_key_value_heads", "q_lora_rank", "kv_lora_rank", "qk_nope_head_dim",
                   "qk_rope_head_dim", "v_head_dim", "attention_bias", "mla_use_nope"});
    return;
  }
  read_attention_heads(reader, architecture);
  if (architecture.num_kv_heads != architecture.num_heads)
    reader.fail("num_key_value_heads", "num_attention_heads (" + std::to_string(architecture.num_heads) +
                                           "): every head has keys and values of its own");
  LatentAttentionForm& form = config.attention;
  form.num_heads = architecture.num_heads;
  form.q_rank = reader.positive("q_lora_rank", 0);
  form.kv_rank = reader.positive("kv_lora_rank", 512);
  form.own_key_dim = reader.positive("qk_nope_head_dim", 128);
  form.shared_key_dim = reader.positive("qk_rope_head_dim", 64);
  form.value_dim = reader.positive("v_head_dim", 128);
  form.bias = reader.flag("attention_bias", false);
  reader.require("mla_use_nope", {true}, "attention has no positions");
  architecture.head_dim = form.key_dim();
  architecture.value_head_dim = form.value_dim;
}

void read_mixture(ConfigReader& reader, KimiLinearConfig& config) {
  const std::string experts = reader.one_of("num_experts", "num_local_experts");
  RouterKeys keys;
  keys.chosen = reader.one_of("num_experts_per_token", "num_experts_per_tok");
  keys.groups = reader.one_of("num_expert_group", "n_group");
  keys.renormalise = reader.one_of("moe_renormalize", "norm_topk_prob");
  const std::string shared = reader.one_of("num_shared_experts", "n_shared_experts");
  MixtureShape& shape = config.architecture.mixture;
  shape.experts = reader.positive(experts, 256);
  if (shape.experts < 2) reader.fail(experts, "an integer of at least 2");
  read_sigmoid_router(reader, experts, keys, {8, 2.446}, shape, config.router);
  reader.require("moe_router_activation_func", {"sigmoid"}, "other scores are not supported");
  shape.intermediate_size = reader.positive("moe_intermediate_size", 1024);
  shape.shared_intermediate_size = shape.intermediate_size * reader.positive(shared, 1);
}

void read_feed_forward(ConfigReader& reader, KimiLinearConfig& config) {
  Architecture& architecture = config.architecture;
  config.sparse = read_sparse_layers(reader, architecture.layers.size());
  std::size_t mixtures = 0;
  for (const bool sparse : config.sparse) mixtures += sparse ? 1 : 0;
  if (mixtures < config.sparse.size()) architecture.intermediate_size = reader.positive("intermediate_size", 9216);
  if (mixtures != 0) read_mixture(reader, config);
  reader.ignore({"intermediate_size", "num_experts", "num_local_experts", "num_experts_per_token",
                 "num_experts_per_tok", "num_expert_group", "n_group", "topk_group", "moe_renormalize",
                 "norm_topk_prob", "num_shared_experts", "n_shared_experts", "routed_scaling_factor",
                 "moe_router_activation_func", "moe_intermediate_size"});
  reader.require("hidden_act", {"silu", "swish"}, "other activations are not supported");
}

// What the published code or transformers' does not look at: the head is never tied, the layers that have experts and
// the groups that they are chosen from are said by other keys, and nothing is rotated.
void ignore_unread_keys(ConfigReader& reader) {
  ignore_common_keys(reader);
  reader.ignore({"tie_word_embeddings", "head_dim", "qk_head_dim", "moe_layer_freq", "use_grouped_topk", "rope_theta",
                 "rope_scaling", "rope_parameters", "pretraining_tp", "num_nextn_predict_layers"});
}

}  // namespace

KimiLinearConfig read_kimi_linear_config(const Checkpoint& checkpoint) {
  ConfigReader reader(checkpoint);
  ConfigReader linear = reader.nested("linear_attn_config");
  KimiLinearConfig config;
  Architecture& architecture = config.architecture;
  architecture.model_type = reader.word("model_type", "");
  architecture.vocab_size = reader.positive("vocab_size");
  architecture.hidden_size = reader.positive("hidden_size");
  architecture.max_positions =
      reader.positive(reader.one_of("model_max_length", "max_position_embeddings"), std::int64_t{1} << 20);
  architecture.layers = read_layers(reader, linear);
  read_mixers(reader, linear, architecture);
  read_attention(reader, config);
  read_feed_forward(reader, config);
  config.norm_eps = read_norm_eps(reader, "rms_norm_eps", 1e-5);
  ignore_unread_keys(reader);
  linear.finish();
  finish_keys(reader, architecture);
  return config;
}

}  // namespace replayeval
