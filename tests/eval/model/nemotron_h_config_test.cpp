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
  EXPECT_EQ(a.mamba.head_dim, 8);
  EXPECT_EQ(a.mamba.state_size, 24);
  EXPECT_EQ(a.conv_kernel, 4);
  EXPECT_EQ(a.num_heads, 4);
  EXPECT_EQ(a.num_kv_heads, 2);
  EXPECT_EQ(a.head_dim, 12);
  EXPECT_TRUE(config.use_bias && config.use_conv_bias && config.mlp_bias);
  EXPECT_TRUE(config.residual_in_fp32 && config.tie_word_embeddings);
  EXPECT_EQ(config.norm_eps, 1e-5);
  EXPECT_EQ(config.time_step_limit_min, 0.0);
  EXPECT_TRUE(std::isinf(config.time_step_limit_max));
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

TEST(NemotronHConfig, RefusesUnsupportedLayers) {
  expect_refused({{"hybrid_override_pattern", "MEM"}}, {"mixture-of-experts", "not supported yet", "layer 1", "MEM"});
  expect_refused({{"hybrid_override_pattern", nullptr}, {"layers_block_type", {"mamba", "moe"}}},
                 {"layers_block_type", "mixture-of-experts", "layer 1"});
  expect_refused({{"hybrid_override_pattern", "MxM"}}, {"'x' at layer 1"});
  expect_refused({{"hybrid_override_pattern", nullptr}, {"layers_block_type", {"mamba", "conv"}}},
                 {"\"conv\" at layer 1"});
  expect_refused({{"hybrid_override_pattern", ""}}, {"hybrid_override_pattern", "expected the layers"});
  expect_refused({{"hybrid_override_pattern", nullptr}}, {"hybrid_override_pattern", "missing"});
  expect_refused({{"layers_block_type", {"mamba"}}}, {"layers_block_type", "same layers"});
}

TEST(NemotronHConfig, RefusesUnknownKeys) {
  expect_refused({{"quantization_config", {{"bits", 4}}}}, {"unknown key \"quantization_config\"", "{\"bits\":4}"});
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
