#include "eval/model/kimi_linear_config.h"

#include <gtest/gtest.h>

#include "eval/model/footprint.h"
#include "tests/eval/checkpoint/expect_error.h"
#include "tests/eval/model/config_folder.h"
#include "tests/eval/model/small_configs.h"

namespace replayeval {
namespace {

using nlohmann::json;

KimiLinearConfig read_changed(const json& change) {
  json config = testing::kimi_linear_config();
  config.merge_patch(change);  // null removes a key
  return read_kimi_linear_config(testing::ConfigFolder(config).open());
}

void expect_refused(const json& change, std::vector<std::string> parts) {
  parts.push_back("config.json: ");
  testing::expect_error<CheckpointError>([&] { read_changed(change); }, parts);
}

TEST(KimiLinearConfig, ReadsEveryKey) {
  const KimiLinearConfig config = read_changed(json::object());
  const Architecture& a = config.architecture;
  EXPECT_EQ(a.layers, (std::vector<LayerKind>{LayerKind::kda, LayerKind::attention, LayerKind::kda}));
  EXPECT_EQ(config.sparse, (std::vector<bool>{false, true, true}));
  EXPECT_EQ(a.delta.num_key_heads, 3);
  EXPECT_EQ(a.delta.num_value_heads, 3);
  EXPECT_EQ(a.delta.key_dim, 24);
  EXPECT_EQ(a.delta.value_dim, 24);
  EXPECT_EQ(a.max_positions, 256);
  EXPECT_EQ(config.attention.q_rank, 0);
  EXPECT_EQ(config.attention.kv_rank, 20);
  EXPECT_EQ(config.attention.key_dim(), 18);
  EXPECT_EQ(a.mixture.experts, 6);
  EXPECT_EQ(a.mixture.chosen, 2);
  EXPECT_EQ(a.mixture.shared_intermediate_size, 56);
  EXPECT_EQ(config.router.scores, RouterScores::sigmoid);
  EXPECT_EQ(config.router.groups, 3);
  EXPECT_EQ(config.router.groups_chosen, 2);
  EXPECT_EQ(config.router.scale, 2.446);
  EXPECT_TRUE(config.router.renormalise);
  EXPECT_EQ(kv_bytes_per_token(a, Dtype::bfloat16), 3 * (18 + 14) * 2);
  EXPECT_EQ(a.published_ring_form(), RingForm::deltas);
}

TEST(KimiLinearConfig, KeysThatDoNothing) {
  const KimiLinearConfig config = read_changed({{"tie_word_embeddings", true}, {"moe_layer_freq", 2}, {"head_dim", 1}});
  EXPECT_EQ(config.sparse, (std::vector<bool>{false, true, true}));
  const std::vector<std::string> ignored = {
      "architectures", "head_dim",   "moe_layer_freq",      "num_nextn_predict_layers",
      "rope_scaling",  "rope_theta", "tie_word_embeddings", "use_grouped_topk"};
  EXPECT_EQ(config.architecture.keys_ignored, ignored);
}

TEST(KimiLinearConfig, NewerKeys) {
  json change = {{"layer_types", {"full_attention", "linear_attention", "linear_attention"}},
                 {"mlp_layer_types", {"sparse", "dense", "sparse"}},
                 {"linear_num_heads", 5},
                 {"linear_head_dim", 16},
                 {"linear_conv_kernel_dim", 3}};
  for (const char* old : {"linear_attn_config", "first_k_dense_replace"}) change[old] = nullptr;
  for (const auto& [old, renamed] :
       std::vector<std::pair<std::string, std::string>>{{"num_experts", "num_local_experts"},
                                                        {"num_experts_per_token", "num_experts_per_tok"},
                                                        {"num_expert_group", "n_group"},
                                                        {"moe_renormalize", "norm_topk_prob"},
                                                        {"num_shared_experts", "n_shared_experts"},
                                                        {"model_max_length", "max_position_embeddings"}}) {
    change[renamed] = testing::kimi_linear_config().at(old);
    change[old] = nullptr;
  }
  change["norm_topk_prob"] = false;
  const KimiLinearConfig config = read_changed(change);
  EXPECT_EQ(config.architecture.layers[0], LayerKind::attention);
  EXPECT_EQ(config.sparse, (std::vector<bool>{true, false, true}));
  EXPECT_EQ(config.architecture.delta.num_value_heads, 5);
  EXPECT_EQ(config.architecture.conv_kernel, 3);
  EXPECT_EQ(config.architecture.mixture.experts, 6);
  EXPECT_EQ(config.architecture.max_positions, 256);
  EXPECT_FALSE(config.router.renormalise);
}

TEST(KimiLinearConfig, LayersThatAreNotListed) {
  const KimiLinearConfig config = read_changed(
      {{"linear_attn_config", {{"kda_layers", nullptr}}}, {"num_hidden_layers", 9}, {"first_k_dense_replace", 0}});
  EXPECT_EQ(config.architecture.count(LayerKind::attention), 2);
  EXPECT_TRUE(config.architecture.layers[4] == LayerKind::attention);
  EXPECT_TRUE(config.architecture.layers[8] == LayerKind::attention);
  EXPECT_EQ(config.sparse, std::vector<bool>(9, true));
}

TEST(KimiLinearConfig, RefusesWhatMakesNoSense) {
  expect_refused({{"sliding_window", 4}}, {"unknown key \"sliding_window\""});
  expect_refused({{"linear_attn_config", {{"gate_lower_bound", -5.0}}}},
                 {"unknown key \"linear_attn_config.gate_lower_bound\""});
  expect_refused({{"linear_attn_config", {{"head_dim", 20}}}}, {"linear_attn_config.head_dim", "multiple of 8"});
  expect_refused({{"linear_attn_config", {{"head_dim", nullptr}}}, {"linear_head_dim", 20}},
                 {"key \"linear_head_dim\" is 20", "multiple of 8"});
  expect_refused({{"linear_attn_config", {{"kda_layers", {0, 1, 3}}}}},
                 {"kda_layers", "from 1 to num_hidden_layers (3)"});
  expect_refused({{"linear_attn_config", {{"kda_layers", {1, 2, 3}}}}}, {"kda_layers", "found 2 again"});
  expect_refused({{"linear_attn_config", {{"kda_layers", {1}}}}}, {"kda_layers", "not found: 3"});
  expect_refused({{"layer_types", {"linear_attention", "linear_attention", "full_attention"}}},
                 {"layer_types", "same layers as linear_attn_config"});
  expect_refused({{"layer_types", {"linear_attention", "full_attention"}}},
                 {"num_hidden_layers", "3", "layer_types has layers (2)"});
  expect_refused({{"mlp_layer_types", {"dense", "sparse"}}}, {"mlp_layer_types", "num_hidden_layers (3) names"});
  expect_refused({{"mlp_layer_types", {"dense", "dense", "sparse"}}}, {"mlp_layer_types", "first_k_dense_replace"});
  expect_refused({{"mlp_layer_types", {"dense", "moe", "sparse"}}}, {"mlp_layer_types", "\"moe\" at layer 1"});
  expect_refused({{"num_key_value_heads", 1}}, {"num_key_value_heads", "num_attention_heads (3)"});
  expect_refused({{"mla_use_nope", false}}, {"mla_use_nope", "true"});
  expect_refused({{"num_experts_per_tok", 3}}, {"num_experts_per_tok", "3", "same as num_experts_per_token: 2"});
  expect_refused({{"num_expert_group", 4}}, {"num_expert_group", "divisor of num_experts (6)"});
  expect_refused({{"topk_group", 4}}, {"topk_group", "at most num_expert_group"});
  expect_refused({{"num_experts_per_token", 5}}, {"num_experts_per_token", "topk_group groups (4)"});
  expect_refused({{"moe_router_activation_func", "softmax"}}, {"moe_router_activation_func", "sigmoid"});
  expect_refused({{"num_shared_experts", 0}}, {"num_shared_experts", "at least 1"});
}

}  // namespace
}  // namespace replayeval
