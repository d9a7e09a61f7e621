// config.json of the Qwen hybrids: defaults, spellings, wrapped folders, refusals.
#include <gtest/gtest.h>

#include <algorithm>

#include "eval/model/qwen3_5_config.h"
#include "eval/model/qwen3_5_moe_config.h"
#include "eval/model/qwen3_next_config.h"
#include "tests/eval/checkpoint/expect_error.h"
#include "tests/eval/model/config_folder.h"
#include "tests/eval/model/small_configs.h"

namespace replayeval {
namespace {

using nlohmann::json;
using testing::ConfigFolder;

constexpr LayerKind delta = LayerKind::gated_delta, attention = LayerKind::attention;

QwenHybridConfig read_next(const json& change = json::object()) {
  json config = testing::qwen3_next_config();
  config.merge_patch(change);  // null removes a key
  return read_qwen3_next_config(ConfigFolder(config).open());
}

QwenHybridConfig read_dense(const json& change = json::object()) {
  json config = testing::qwen3_5_config();
  config.merge_patch(change);
  return read_qwen3_5_config(ConfigFolder(config).open());
}

QwenHybridConfig read_moe(const json& change = json::object()) {
  json config = testing::qwen3_5_moe_config();
  config.merge_patch(change);
  return read_qwen3_5_moe_config(ConfigFolder(config).open());
}

template <typename Read>
void expect_refused(Read read, const json& change, std::vector<std::string> parts) {
  parts.push_back("config.json: ");
  testing::expect_error<CheckpointError>([&] { read(change); }, parts);
}

TEST(Qwen3NextConfig, ReadsEveryKey) {
  const QwenHybridConfig config = read_next();
  const Architecture& a = config.architecture;
  EXPECT_EQ(a.layers, (std::vector<LayerKind>{delta, delta, attention, delta}));
  EXPECT_EQ(config.mixtures, (std::vector<bool>{false, true, false, true}));
  EXPECT_EQ(a.delta.num_key_heads, 2);
  EXPECT_EQ(a.delta.num_value_heads, 6);
  EXPECT_EQ(a.delta.key_dim, 24);
  EXPECT_EQ(a.delta.value_dim, 40);
  EXPECT_EQ(a.conv_kernel, 3);
  EXPECT_EQ(a.intermediate_size, 52);
  EXPECT_EQ(a.mixture.experts, 5);
  EXPECT_EQ(a.mixture.chosen, 2);
  EXPECT_EQ(a.mixture.intermediate_size, 20);
  EXPECT_EQ(a.mixture.shared_intermediate_size, 28);
  EXPECT_EQ(config.rotary.rotary_dim, 6);
  EXPECT_EQ(config.rotary.theta, 1e5);
  EXPECT_TRUE(config.renormalise && !config.attention_bias && !config.tie_word_embeddings);
  EXPECT_EQ(a.keys_read.size() + a.keys_ignored.size(), testing::qwen3_next_config().size());
  expect_refused(read_next, {{"conv_bias", true}}, {"unknown key \"conv_bias\""});
}

TEST(Qwen3NextConfig, DefaultsOfThePublishedCode) {
  const QwenHybridConfig config = read_qwen3_next_config(ConfigFolder(json{{"model_type", "qwen3_next"}}).open());
  const Architecture& a = config.architecture;
  EXPECT_EQ(a.layers.size(), 48U);
  EXPECT_EQ(a.count(attention), 12);
  EXPECT_EQ(a.layers[3], attention);
  EXPECT_EQ(std::count(config.mixtures.begin(), config.mixtures.end(), true), 48);
  EXPECT_EQ(a.mixture.experts, 512);
  EXPECT_EQ(a.mixture.chosen, 10);
  EXPECT_EQ(a.num_heads, 16);
  EXPECT_EQ(a.num_kv_heads, 2);
  EXPECT_EQ(a.delta.num_value_heads, 32);
  EXPECT_EQ(config.rotary.rotary_dim, 64);
  EXPECT_EQ(config.norm_eps, 1e-6);
}

TEST(Qwen3NextConfig, WhichLayersHaveExperts) {
  EXPECT_EQ(read_next({{"mlp_only_layers", {3}}}).mixtures, (std::vector<bool>{false, true, false, false}));
  EXPECT_EQ(read_next({{"decoder_sparse_step", 1}, {"mlp_only_layers", {0, 2}}}).mixtures,
            (std::vector<bool>{false, true, false, true}));
  const QwenHybridConfig all = read_next({{"decoder_sparse_step", nullptr}, {"intermediate_size", 7}});
  EXPECT_EQ(all.mixtures, (std::vector<bool>(4, true)));
  EXPECT_EQ(all.architecture.intermediate_size, 0);
  const QwenHybridConfig dense = read_next({{"num_experts", 0}, {"num_experts_per_tok", 0}});
  EXPECT_EQ(dense.mixtures, (std::vector<bool>(4, false)));
  EXPECT_EQ(dense.architecture.mixture.experts, 0);
  EXPECT_FALSE(read_next({{"norm_topk_prob", false}}).renormalise);
}

TEST(Qwen3NextConfig, AListOfLayersWinsOverTheInterval) {
  EXPECT_EQ(read_next({{"layer_types", {"full_attention", "linear_attention"}}, {"num_hidden_layers", 2}})
                .architecture.layers,
            (std::vector<LayerKind>{attention, delta}));
  expect_refused(read_next, {{"layer_types", {"full_attention"}}}, {"num_hidden_layers", "(1)"});
  expect_refused(read_next, {{"layer_types", {"mamba"}}, {"num_hidden_layers", 1}}, {"layer_types", "mamba"});
  expect_refused(read_next, {{"layer_types", json::array()}}, {"layer_types", "at least one layer"});
}

TEST(Qwen3NextConfig, AShareAmongTheRopeParametersWins) {
  const json parameters = {{"rope_type", "default"}, {"rope_theta", 100}, {"partial_rotary_factor", 1.0}};
  EXPECT_EQ(read_next({{"rope_parameters", parameters}}).rotary.rotary_dim, 12);
  EXPECT_EQ(read_next({{"rope_parameters", parameters}}).rotary.theta, 100);
}

TEST(Qwen3NextConfig, WithoutAttentionItsKeysAreIgnored) {
  const QwenHybridConfig config = read_next({{"full_attention_interval", 5}, {"num_attention_heads", 0}});
  EXPECT_EQ(config.architecture.count(attention), 0);
  EXPECT_EQ(config.architecture.num_heads, 0);
}

TEST(Qwen3NextConfig, Refusals) {
  expect_refused(read_next, {{"num_experts_per_tok", 6}}, {"num_experts_per_tok", "at most num_experts (5)"});
  expect_refused(read_next, {{"mlp_only_layers", {4}}}, {"mlp_only_layers", "0 to num_hidden_layers - 1 (3)"});
  expect_refused(read_next, {{"decoder_sparse_step", 0}}, {"decoder_sparse_step", "at least 1"});
  expect_refused(read_next, {{"full_attention_interval", 0}}, {"full_attention_interval", "at least 1"});
  expect_refused(read_next, {{"linear_num_value_heads", 3}}, {"linear_num_value_heads", "linear_num_key_heads (2)"});
  expect_refused(read_next, {{"linear_key_head_dim", 20}}, {"linear_key_head_dim", "multiple of 8"});
  expect_refused(read_next, {{"num_key_value_heads", 3}}, {"num_key_value_heads", "divisor"});
  expect_refused(read_next, {{"hidden_act", "gelu"}}, {"hidden_act", "silu"});
  expect_refused(read_next, {{"partial_rotary_factor", 0.25}}, {"partial_rotary_factor", "12"});
}

TEST(Qwen35Config, ReadsEveryKeyOfALanguageModelAlone) {
  const QwenHybridConfig config = read_dense();
  const Architecture& a = config.architecture;
  EXPECT_EQ(a.model_type, "qwen3_5_text");
  EXPECT_EQ(a.layers, (std::vector<LayerKind>{delta, attention, delta}));
  EXPECT_EQ(config.mixtures, (std::vector<bool>(3, false)));
  EXPECT_EQ(a.intermediate_size, 52);
  EXPECT_EQ(config.rotary.rotary_dim, 4);
  EXPECT_EQ(a.keys_read.size() + a.keys_ignored.size(), testing::qwen3_5_config().size());
}

TEST(Qwen35Config, DefaultsOfThePublishedCode) {
  const json wrapped = {{"model_type", "qwen3_5"}, {"text_config", json::object()}};
  const Architecture a = read_qwen3_5_config(ConfigFolder(wrapped).open()).architecture;
  EXPECT_EQ(a.layers.size(), 32U);
  EXPECT_EQ(a.vocab_size, 248320);
  EXPECT_EQ(a.hidden_size, 4096);
  EXPECT_EQ(a.intermediate_size, 12288);
  EXPECT_EQ(a.num_kv_heads, 4);
}

TEST(Qwen35Config, Refusals) {
  expect_refused(read_dense, {{"attn_output_gate", false}}, {"attn_output_gate", "expected true"});
  expect_refused(read_dense, {{"output_gate_type", "sigmoid"}}, {"output_gate_type", "swish"});
  expect_refused(read_dense, {{"text_config", "x"}}, {"text_config", "an object"});
}

TEST(Qwen35MoeConfig, ReadsEveryKeyInsideAndOutside) {
  const QwenHybridConfig config = read_moe();
  const Architecture& a = config.architecture;
  EXPECT_EQ(a.model_type, "qwen3_5_moe");
  EXPECT_EQ(config.mixtures, (std::vector<bool>(3, true)));
  EXPECT_EQ(a.mixture.experts, 4);
  EXPECT_EQ(a.intermediate_size, 0);
  EXPECT_TRUE(config.tie_word_embeddings && config.renormalise);
  const json whole = testing::qwen3_5_moe_config();
  EXPECT_EQ(a.keys_read.size() + a.keys_ignored.size(), whole.size() + whole["text_config"].size());
  EXPECT_NE(std::find(a.keys_read.begin(), a.keys_read.end(), "text_config.num_experts"), a.keys_read.end());
  EXPECT_TRUE(
      read_moe({{"tie_word_embeddings", false}, {"text_config", {{"tie_word_embeddings", true}}}}).tie_word_embeddings);
}

TEST(Qwen35MoeConfig, Refusals) {
  const auto inside = [](const json& change) { return json{{"text_config", change}}; };
  expect_refused(read_moe, {{"audio_config", 1}}, {"unknown key \"audio_config\""});
  expect_refused(read_moe, inside({{"audio", 1}}), {"unknown key \"text_config.audio\""});
  expect_refused(read_moe, inside({{"norm_topk_prob", false}}), {"text_config.norm_topk_prob", "always renormalises"});
  expect_refused(read_moe, inside({{"mlp_only_layers", {1}}}), {"text_config.mlp_only_layers", "in every layer"});
  expect_refused(read_moe, inside({{"num_experts", 2}}), {"text_config.num_experts_per_tok", "(2)"});
  expect_refused(read_moe, inside({{"rope_parameters", {{"mrope_sections", 1}}}}), {"rope_parameters.mrope_sections"});
}

TEST(Qwen35MoeConfig, TheTypeOfTheWeightsMayStandInside) {
  const Checkpoint config = Checkpoint::of_config(testing::qwen3_5_moe_config(), "config.json");
  EXPECT_EQ(stored_dtype(config), Dtype::bfloat16);
}

}  // namespace
}  // namespace replayeval
