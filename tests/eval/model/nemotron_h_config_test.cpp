#include <gtest/gtest.h>

#include "eval/model/architecture.h"
#include "eval/model/nemotron_h_config.h"
#include "tests/eval/checkpoint/expect_error.h"
#include "tests/eval/model/tiny_nemotron_h.h"

namespace replayeval {
namespace {

using nlohmann::json;
using testing::TinyNemotronH;

// What config.json becomes with one change, or the error that it causes.
NemotronHConfig read_changed(const json& change) {
  TinyNemotronH tiny;
  tiny.config.merge_patch(change);  // null removes a key
  return read_nemotron_h_config(tiny.open());
}

void expect_refused(const json& change, std::vector<std::string> parts) {
  parts.push_back("config.json: ");
  testing::expect_error<CheckpointError>([&] { read_changed(change); }, parts);
}

const std::vector<LayerKind> tiny_layers = {LayerKind::mamba2, LayerKind::mlp, LayerKind::attention, LayerKind::mamba2,
                                            LayerKind::attention};

TEST(NemotronHConfig, ReadsEveryKey) {
  const NemotronHConfig config = read_changed({{"residual_in_fp32", true}, {"tie_word_embeddings", true}});
  const Architecture& a = config.architecture;
  EXPECT_EQ(a.layers, tiny_layers);
  EXPECT_EQ(a.vocab_size, 101);
  EXPECT_EQ(a.hidden_size, 44);
  EXPECT_EQ(a.intermediate_size, 52);
  EXPECT_EQ(a.max_positions, 256);
  EXPECT_EQ(a.mamba.num_heads, 6);
  EXPECT_EQ(a.mamba.num_groups, 3);
  EXPECT_EQ(a.norm_group_size.published, a.mamba.num_heads * a.mamba.head_dim / 3);
  EXPECT_EQ(a.norm_group_size.transformers, a.norm_group_size.published);
  EXPECT_EQ(a.mamba.head_dim, 8);
  EXPECT_EQ(a.mamba.state_size, 24);
  EXPECT_EQ(a.conv_kernel, 4);
  EXPECT_EQ(a.num_heads, 4);
  EXPECT_EQ(a.num_kv_heads, 2);
  EXPECT_EQ(a.head_dim, 12);
  EXPECT_TRUE(config.use_bias && config.use_conv_bias && config.mlp_bias);
  EXPECT_TRUE(config.residual_in_fp32 && config.tie_word_embeddings);
  EXPECT_EQ(config.norm_eps, 1e-5);
  EXPECT_EQ(config.time_step_limit.min, 0.0);
  EXPECT_TRUE(std::isinf(config.time_step_limit.max));
  EXPECT_EQ(config.time_step_min, 0.001);
}

TEST(NemotronHConfig, AccountsForEveryKey) {
  const Architecture a = read_changed({{"rope_theta", 10000}}).architecture;
  TinyNemotronH tiny;
  EXPECT_EQ(a.keys_read.size() + a.keys_ignored.size(), tiny.config.size() + 1);
  EXPECT_EQ(a.keys_ignored, (std::vector<std::string>{"architectures", "dtype", "rope_theta"}));
}

TEST(NemotronHConfig, ReadsLayerListsInOldAndNewWords) {
  const json remove = {{"hybrid_override_pattern", nullptr}};
  for (const char* key : {"layers_block_type", "layer_types"})
    for (const json& words : {json{"linear_attention", "mlp", "full_attention", "linear_attention", "full_attention"},
                              json{"mamba", "mlp", "attention", "mamba", "attention"}}) {
      json change = remove;
      change[key] = words;
      EXPECT_EQ(read_changed(change).architecture.layers, tiny_layers);
    }
}

TEST(NemotronHConfig, ReadsTheOtherSpellingOfTransformers) {
  const NemotronHConfig config = read_changed({{"n_groups", nullptr},
                                               {"mamba_n_groups", 2},
                                               {"conv_kernel", 7},
                                               {"mamba_d_conv", 3},
                                               {"use_conv_bias", nullptr},
                                               {"mamba_conv_bias", false},
                                               {"time_step_min", nullptr},
                                               {"mamba_dt_min", 0.25},
                                               {"time_step_limit", nullptr},
                                               {"mamba_dt_limit", {0.5, 2.0}}});
  EXPECT_EQ(config.architecture.mamba.num_groups, 2);
  EXPECT_EQ(config.architecture.conv_kernel, 3);
  EXPECT_FALSE(config.use_conv_bias);
  EXPECT_EQ(config.time_step_min, 0.25);
  EXPECT_EQ(config.time_step_limit.min, 0.5);
  EXPECT_EQ(config.time_step_limit.max, 2.0);
  expect_refused({{"mamba_n_groups", 4}}, {"mamba_n_groups", "divisor of mamba_num_heads (6)"});
}

const json mixture = {{"hybrid_override_pattern", "ME"},
                      {"n_routed_experts", 12},
                      {"moe_intermediate_size", 40},
                      {"moe_shared_expert_intermediate_size", 56},
                      {"num_experts_per_tok", 3}};

json mixture_with(const json& change) {
  json config = mixture;
  config.update(change);
  return config;
}

TEST(NemotronHConfig, ReadsMixtures) {
  const NemotronHConfig config = read_changed(mixture_with({{"moe_latent_size", 24},
                                                            {"n_group", 4},
                                                            {"topk_group", 2},
                                                            {"routed_scaling_factor", 2.5},
                                                            {"norm_topk_prob", false},
                                                            {"num_local_experts", 12}}));
  EXPECT_EQ(config.architecture.layers, (std::vector<LayerKind>{LayerKind::mamba2, LayerKind::moe}));
  const MixtureShape& shape = config.architecture.mixture;
  EXPECT_EQ(shape.experts, 12);
  EXPECT_EQ(shape.chosen, 3);
  EXPECT_EQ(shape.intermediate_size, 40);
  EXPECT_EQ(shape.shared_intermediate_size, 56);
  EXPECT_EQ(shape.latent_size, 24);
  EXPECT_EQ(config.router.scores, RouterScores::sigmoid);
  EXPECT_EQ(config.router.chosen, 3);
  EXPECT_EQ(config.router.groups, 4);
  EXPECT_EQ(config.router.groups_chosen, 2);
  EXPECT_EQ(config.router.scale, 2.5);
  EXPECT_FALSE(config.router.renormalise);
  const NemotronHConfig plain = read_changed(mixture);
  EXPECT_EQ(plain.architecture.mixture.latent_size, 0);
  EXPECT_TRUE(plain.router.renormalise);
  EXPECT_EQ(plain.router.groups, 1);
  EXPECT_EQ(plain.router.scale, 1.0);
  json other_name = mixture_with({{"num_local_experts", 12}});
  other_name["n_routed_experts"] = nullptr;
  EXPECT_EQ(read_changed(other_name).architecture.mixture.experts, 12);
}

TEST(NemotronHConfig, RefusesMixturesThatMakeNoSense) {
  for (const char* key : {"moe_intermediate_size", "moe_shared_expert_intermediate_size", "num_experts_per_tok"})
    expect_refused(mixture_with({{key, nullptr}}), {key, "is missing", "at least 1"});
  expect_refused(mixture_with({{"n_routed_experts", nullptr}}), {"num_local_experts", "is missing"});
  expect_refused(mixture_with({{"num_local_experts", 11}}), {"num_local_experts", "11", "same number"});
  expect_refused(mixture_with({{"num_experts_per_tok", 13}}), {"num_experts_per_tok", "13", "(12)"});
  expect_refused(mixture_with({{"n_group", 5}}), {"n_group", "divisor of n_routed_experts (12)"});
  expect_refused(mixture_with({{"n_group", 12}, {"topk_group", 4}}), {"n_group", "two experts a group"});
  expect_refused(mixture_with({{"n_group", 3}, {"topk_group", 4}}), {"topk_group", "at most n_group"});
  expect_refused(mixture_with({{"n_group", 6}}), {"num_experts_per_tok", "(2)"});
  expect_refused(mixture_with({{"routed_scaling_factor", {{"__float__", "Infinity"}}}}),
                 {"routed_scaling_factor", "finite"});
}

TEST(NemotronHConfig, RefusesUnsupportedLayers) {
  expect_refused({{"hybrid_override_pattern", "MxM"}}, {"'x' at layer 1"});
  expect_refused({{"hybrid_override_pattern", nullptr}, {"layers_block_type", {"mamba", "conv"}}},
                 {"\"conv\" at layer 1"});
  expect_refused({{"hybrid_override_pattern", ""}}, {"hybrid_override_pattern", "expected the layers"});
  expect_refused({{"hybrid_override_pattern", nullptr}}, {"hybrid_override_pattern", "missing"});
  expect_refused({{"layers_block_type", {"mamba"}}}, {"layers_block_type", "same layers"});
}

// As the published configuration code does; transformers would take the pattern and warn.
TEST(NemotronHConfig, TheNumberOfLayersIsThatOfThePattern) {
  EXPECT_EQ(read_changed({{"num_hidden_layers", 5}}).architecture.layers, tiny_layers);
  expect_refused({{"num_hidden_layers", 6}},
                 {"key \"num_hidden_layers\" is 6", "as many as hybrid_override_pattern has layers (5)"});
  expect_refused({{"num_hidden_layers", 2}, {"hybrid_override_pattern", nullptr}, {"layers_block_type", {"mamba"}}},
                 {"key \"num_hidden_layers\" is 2", "as many as layers_block_type has layers (1)"});
  expect_refused({{"num_hidden_layers", "5"}}, {"num_hidden_layers", "an integer of at least 1"});
}

TEST(NemotronHConfig, RefusesUnknownKeys) {
  expect_refused({{"attention_sinks", {{"tokens", 4}}}}, {"unknown key \"attention_sinks\"", "{\"tokens\":4}"});
}

TEST(NemotronHConfig, RefusesMissingAndBadValues) {
  for (const char* key : {"vocab_size", "hidden_size", "mamba_num_heads", "n_groups", "mamba_head_dim",
                          "ssm_state_size", "num_attention_heads", "intermediate_size"}) {
    const std::string quoted = "key \"" + std::string(key) + "\"";
    expect_refused({{key, nullptr}}, {quoted, "is missing", "at least 1"});
    for (const json& value : {json(0), json(-8), json(1.5), json("8"), json(true), json(1LL << 40)})
      expect_refused({{key, value}}, {quoted, value.dump(), "at least 1"});
  }
  expect_refused({{"mamba_head_dim", 12}}, {"mamba_head_dim", "12", "multiple of 8 up to 128"});
  expect_refused({{"ssm_state_size", 264}}, {"ssm_state_size", "264", "multiple of 8 up to 256"});
  expect_refused({{"n_groups", 4}}, {"n_groups", "4", "divisor of mamba_num_heads (6)"});
  expect_refused({{"num_key_value_heads", 3}}, {"num_key_value_heads", "divisor of num_attention_heads (4)"});
  expect_refused({{"conv_kernel", 9}}, {"conv_kernel", "2 to 8"});
  expect_refused({{"mlp_hidden_act", "silu"}}, {"mlp_hidden_act", "\"silu\"", "relu2"});
  expect_refused({{"mamba_hidden_act", "gelu"}}, {"mamba_hidden_act", "\"gelu\"", "silu"});
  expect_refused({{"use_bias", 1}}, {"use_bias", "true or false"});
  expect_refused({{"layer_norm_epsilon", -1}}, {"layer_norm_epsilon", "0 to 1"});
  expect_refused({{"layer_norm_epsilon", {{"__float__", "NaN"}}}}, {"layer_norm_epsilon", "a number"});
  expect_refused({{"time_step_limit", {0.1}}}, {"time_step_limit", "[min, max]"});
  expect_refused({{"time_step_limit", {0.2, 0.1}}}, {"time_step_limit", "[min, max]"});
}

TEST(NemotronHConfig, KeysOfUnusedLayersNeedNotMakeSense) {
  EXPECT_NO_THROW(
      read_changed({{"hybrid_override_pattern", "M"}, {"num_key_value_heads", 3}, {"intermediate_size", nullptr}}));
}

TEST(Architecture, RefusesUnknownModelTypes) {
  TinyNemotronH tiny;
  tiny.config["model_type"] = "llama";
  testing::expect_error<CheckpointError>([&] { describe_architecture(tiny.open()); },
                                         {"config.json", "model_type", "\"llama\"", "nemotron_h"});
  tiny.config.erase("model_type");
  testing::expect_error<CheckpointError>([&] { describe_architecture(tiny.open()); }, {"model_type", "is missing"});
}

}  // namespace
}  // namespace replayeval
