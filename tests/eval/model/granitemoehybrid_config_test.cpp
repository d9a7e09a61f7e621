#include "eval/model/granitemoehybrid_config.h"

#include <gtest/gtest.h>

#include "tests/eval/checkpoint/expect_error.h"
#include "tests/eval/model/config_folder.h"

namespace replayeval {
namespace {

using nlohmann::json;

json tiny() {
  return json::parse(R"({
    "model_type": "granitemoehybrid", "architectures": ["GraniteMoeHybridForCausalLM"], "vocab_size": 99,
    "hidden_size": 64, "intermediate_size": 24, "shared_intermediate_size": 40, "num_local_experts": 6,
    "num_experts_per_tok": 2, "num_hidden_layers": 3, "layer_types": ["mamba", "attention", "mamba"],
    "num_attention_heads": 4, "num_key_value_heads": 2, "mamba_n_heads": 8, "mamba_n_groups": 2, "mamba_d_head": 16,
    "mamba_d_state": 32, "mamba_d_conv": 4, "mamba_expand": 2, "mamba_conv_bias": true, "mamba_proj_bias": false,
    "mamba_chunk_size": 256, "hidden_act": "silu", "rms_norm_eps": 1e-5, "max_position_embeddings": 512,
    "position_embedding_type": "nope", "rope_theta": 10000, "rope_scaling": null, "attention_bias": false,
    "attention_multiplier": 0.125, "embedding_multiplier": 12, "residual_multiplier": 0.22, "logits_scaling": 6,
    "tie_word_embeddings": true, "normalization_function": "rmsnorm", "init_method": "mup",
    "router_aux_loss_coef": 0.01, "output_router_logits": false})");
}

GraniteMoeHybridConfig read_changed(const json& change = json::object()) {
  json config = tiny();
  config.merge_patch(change);  // null removes a key
  return read_granitemoehybrid_config(testing::ConfigFolder(config).open());
}

void expect_refused(const json& change, std::vector<std::string> parts) {
  parts.push_back("config.json: ");
  testing::expect_error<CheckpointError>([&] { read_changed(change); }, parts);
}

TEST(GraniteMoeHybridConfig, ReadsEveryKey) {
  const GraniteMoeHybridConfig config = read_changed();
  const Architecture& a = config.architecture;
  EXPECT_EQ(a.layers, (std::vector<LayerKind>{LayerKind::mamba2, LayerKind::attention, LayerKind::mamba2}));
  EXPECT_EQ(a.vocab_size, 99);
  EXPECT_EQ(a.hidden_size, 64);
  EXPECT_EQ(a.max_positions, 512);
  EXPECT_EQ(a.mamba.num_heads, 8);
  EXPECT_EQ(a.mamba.num_groups, 2);
  EXPECT_EQ(a.norm_group_size.published, a.mamba.num_heads * a.mamba.head_dim / 2);
  EXPECT_EQ(a.norm_group_size.transformers, a.mamba.num_heads * a.mamba.head_dim);
  EXPECT_EQ(a.mamba.head_dim, 16);
  EXPECT_EQ(a.mamba.state_size, 32);
  EXPECT_EQ(a.num_heads, 4);
  EXPECT_EQ(a.num_kv_heads, 2);
  EXPECT_EQ(a.head_dim, 16);
  EXPECT_EQ(a.mixture.experts, 6);
  EXPECT_EQ(a.mixture.chosen, 2);
  EXPECT_EQ(a.mixture.intermediate_size, 24);
  EXPECT_EQ(a.mixture.shared_intermediate_size, 40);
  EXPECT_TRUE(config.mamba.conv_bias && config.tie_word_embeddings);
  EXPECT_FALSE(config.mamba.proj_bias || config.attention_bias || config.rotary.has_value());
  EXPECT_EQ(config.mamba.time_step.min, 0.0);
  EXPECT_TRUE(std::isinf(config.mamba.time_step.max));
  EXPECT_EQ(config.attention_multiplier, 0.125);
  EXPECT_EQ(config.embedding_multiplier, 12.0);
  EXPECT_EQ(config.residual_multiplier, 0.22);
  EXPECT_EQ(config.logits_scaling, 6.0);
  EXPECT_EQ(config.norm_eps, 1e-5);
  EXPECT_EQ(a.keys_read.size() + a.keys_ignored.size(), tiny().size());
}

TEST(GraniteMoeHybridConfig, ReadsVariants) {
  const GraniteMoeHybridConfig rotary = read_changed({{"position_embedding_type", "rope"}, {"head_dim", 24}});
  ASSERT_TRUE(rotary.rotary.has_value());
  EXPECT_EQ(rotary.rotary->rotary_dim, 24);
  const GraniteMoeHybridConfig dense =
      read_changed({{"num_local_experts", 0}, {"intermediate_size", nullptr}, {"num_experts_per_tok", nullptr}});
  EXPECT_EQ(dense.architecture.mixture.experts, 0);
  EXPECT_EQ(dense.architecture.intermediate_size, 40);
  EXPECT_EQ(read_changed({{"shared_intermediate_size", 0}}).architecture.mixture.shared_intermediate_size, 0);
  EXPECT_EQ(read_changed({{"mamba_d_head", "auto"}}).mamba.shape.head_dim, 16);
  EXPECT_EQ(read_changed({{"layer_types", nullptr}}).architecture.count(LayerKind::mamba2), 3);
  EXPECT_EQ(read_changed({{"time_step_limit", {0.1, 0.5}}}).mamba.time_step.max, 0.5);
  // Sizes of layers that are not there need not make sense.
  EXPECT_NO_THROW(read_changed({{"layer_types", {"attention", "attention", "attention"}}, {"mamba_d_head", 17}}));
  EXPECT_NO_THROW(read_changed({{"layer_types", {"mamba", "mamba", "mamba"}}, {"num_key_value_heads", 3}}));
}

TEST(GraniteMoeHybridConfig, RefusesWhatMakesNoSense) {
  expect_refused({{"attention_sinks", 4}}, {"unknown key \"attention_sinks\""});
  expect_refused({{"layer_types", {"mamba", "mlp", "mamba"}}}, {"layer_types", "\"mlp\" at layer 1", "full_attention"});
  expect_refused({{"layer_types", {"mamba", "mamba"}}}, {"num_hidden_layers", "3", "(2)"});
  expect_refused({{"layers_block_type", {"mamba", "mamba", "mamba"}}}, {"layers_block_type", "same layers"});
  expect_refused({{"layer_types", nullptr}, {"num_hidden_layers", 20000}}, {"num_hidden_layers", "at most 10000"});
  expect_refused({{"mamba_d_head", 24}}, {"mamba_d_head", "24", "mamba_expand * hidden_size (128)"});
  expect_refused({{"mamba_d_head", "auto"}, {"mamba_n_heads", 7}}, {"mamba_n_heads", "7", "(128)"});
  expect_refused({{"mamba_n_groups", 3}}, {"mamba_n_groups", "divisor of mamba_n_heads (8)"});
  expect_refused({{"num_experts_per_tok", 7}}, {"num_experts_per_tok", "at most num_local_experts (6)"});
  expect_refused({{"num_local_experts", 0}, {"shared_intermediate_size", 0}},
                 {"shared_intermediate_size", "no experts"});
  expect_refused({{"logits_scaling", 0}}, {"logits_scaling", "other than 0"});
  expect_refused({{"hidden_act", "gelu"}}, {"hidden_act", "\"gelu\"", "silu"});
  expect_refused({{"normalization_function", "layernorm"}}, {"normalization_function", "rmsnorm"});
  expect_refused({{"residual_multiplier", {{"__float__", "Infinity"}}}}, {"residual_multiplier", "finite"});
  expect_refused({{"num_key_value_heads", 3}}, {"num_key_value_heads", "divisor of num_attention_heads (4)"});
  expect_refused({{"num_attention_heads", 80}, {"num_key_value_heads", 80}}, {"num_attention_heads", "hidden_size"});
}

}  // namespace
}  // namespace replayeval
