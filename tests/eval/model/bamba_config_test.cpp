#include "eval/model/bamba_config.h"

#include <gtest/gtest.h>

#include "tests/eval/checkpoint/expect_error.h"
#include "tests/eval/model/config_folder.h"

namespace replayeval {
namespace {

using nlohmann::json;

json tiny() {
  return json::parse(R"({
    "model_type": "bamba", "architectures": ["BambaForCausalLM"], "vocab_size": 99, "hidden_size": 64,
    "intermediate_size": 24, "num_hidden_layers": 4, "attn_layer_indices": [1, 3], "num_attention_heads": 4,
    "num_key_value_heads": 2, "mamba_n_heads": 8, "mamba_n_groups": 1, "mamba_d_head": 16, "mamba_d_state": 32,
    "mamba_d_conv": 4, "mamba_expand": 2, "mamba_conv_bias": true, "mamba_proj_bias": false, "mamba_chunk_size": 256,
    "hidden_act": "silu", "rms_norm_eps": 1e-5, "max_position_embeddings": 512, "rope_theta": 10000,
    "rope_scaling": null, "attention_bias": false, "attention_dropout": 0.0, "mlp_bias": false,
    "tie_word_embeddings": false, "num_logits_to_keep": 1, "z_loss_coefficient": 0.0})");
}

BambaConfig read_changed(const json& change = json::object()) {
  json config = tiny();
  config.merge_patch(change);  // null removes a key
  return read_bamba_config(testing::ConfigFolder(config).open());
}

void expect_refused(const json& change, std::vector<std::string> parts) {
  parts.push_back("config.json: ");
  testing::expect_error<CheckpointError>([&] { read_changed(change); }, parts);
}

TEST(BambaConfig, ReadsEveryKey) {
  const BambaConfig config = read_changed();
  const Architecture& a = config.architecture;
  EXPECT_EQ(a.layers,
            (std::vector<LayerKind>{LayerKind::mamba2, LayerKind::attention, LayerKind::mamba2, LayerKind::attention}));
  EXPECT_EQ(a.hidden_size, 64);
  EXPECT_EQ(a.intermediate_size, 24);
  EXPECT_EQ(a.mamba.head_dim, 16);
  EXPECT_EQ(a.head_dim, 16);
  EXPECT_EQ(config.norm_eps, 1e-5);
  EXPECT_FALSE(config.attention_bias || config.mlp_bias || config.tie_word_embeddings);
  EXPECT_EQ(a.keys_read.size() + a.keys_ignored.size(), tiny().size());
}

TEST(BambaConfig, TrainingNormalisesEachGroupTransformersTheWholeWidth) {
  const NormGroupSize size = read_changed({{"mamba_n_groups", 4}}).architecture.norm_group_size;
  EXPECT_EQ(size.of(NormSpan::published), 32);
  EXPECT_EQ(size.of(NormSpan::transformers), 128);
  EXPECT_EQ(read_changed().architecture.norm_group_size.published, 128);
}

TEST(BambaConfig, HalfOfAHeadTurnsUnlessTheRopeParametersSay) {
  EXPECT_EQ(read_changed().rotary.rotary_dim, 8);
  EXPECT_EQ(read_changed({{"partial_rotary_factor", 1.0}}).rotary.rotary_dim, 8);
  const BambaConfig said = read_changed(
      {{"rope_theta", nullptr}, {"rope_parameters", {{"rope_theta", 500.0}, {"partial_rotary_factor", 0.25}}}});
  EXPECT_EQ(said.rotary.rotary_dim, 4);
  EXPECT_EQ(said.rotary.theta, 500.0);
}

TEST(BambaConfig, AttentionMayBeAbsent) {
  for (const json& change : {json{{"attn_layer_indices", nullptr}}, json{{"attn_layer_indices", json::array()}}})
    EXPECT_EQ(read_changed(change).architecture.count(LayerKind::mamba2), 4);
}

TEST(BambaConfig, RefusesWhatMakesNoSense) {
  expect_refused({{"attention_sinks", 4}}, {"unknown key \"attention_sinks\""});
  for (const json& bad : {json{4}, json{-1}, json{0.5}})
    expect_refused({{"attn_layer_indices", bad}}, {"attn_layer_indices", "integers from 0", "(3)"});
  expect_refused({{"attn_layer_indices", "all"}}, {"attn_layer_indices", "list of numbers"});
  expect_refused({{"layer_types", {"mamba", "mamba", "mamba", "attention"}}}, {"layer_types", "same layers"});
  EXPECT_NO_THROW(read_changed({{"layers_block_type", {"mamba", "attention", "mamba", "attention"}}}));
  expect_refused({{"num_hidden_layers", 1LL << 30}}, {"num_hidden_layers", "at most 10000"});
  expect_refused({{"intermediate_size", nullptr}}, {"intermediate_size", "is missing"});
  expect_refused({{"mamba_n_heads", nullptr}}, {"mamba_n_heads", "is missing"});
  expect_refused({{"hidden_act", "relu"}}, {"hidden_act", "\"relu\"", "silu"});
}

}  // namespace
}  // namespace replayeval
