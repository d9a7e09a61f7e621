// config.json of mamba2, falcon_h1 and zamba2 folders: defaults, spellings, refusals.
#include <gtest/gtest.h>

#include <cmath>

#include "eval/model/falcon_h1_config.h"
#include "eval/model/mamba2_config.h"
#include "eval/model/zamba2_config.h"
#include "tests/eval/checkpoint/expect_error.h"
#include "tests/eval/model/config_folder.h"
#include "tests/eval/model/small_configs.h"

namespace replayeval {
namespace {

using nlohmann::json;
using testing::ConfigFolder;

template <typename Read>
auto changed(json config, const json& change, Read read) {
  config.merge_patch(change);  // null removes a key
  return read(ConfigFolder(config).open());
}

Mamba2Config read_mamba2(const json& change) { return changed(testing::mamba2_config(), change, &read_mamba2_config); }
FalconH1Config read_falcon(const json& change) {
  return changed(testing::falcon_h1_config(), change, &read_falcon_h1_config);
}
Zamba2Config read_zamba(const json& change) { return changed(testing::zamba2_config(), change, &read_zamba2_config); }

template <typename Read>
void expect_refused(Read read, const json& change, std::vector<std::string> parts) {
  parts.push_back("config.json: ");
  testing::expect_error<CheckpointError>([&] { read(change); }, parts);
}

// Every key is one that was read or one that is known to do nothing.
void expect_accounted(const Architecture& architecture, const json& config, std::size_t ignored) {
  EXPECT_EQ(architecture.keys_read.size() + architecture.keys_ignored.size(), config.size());
  EXPECT_EQ(architecture.keys_ignored.size(), ignored);
}

TEST(Mamba2Config, AccountsForEveryKey) {
  expect_accounted(read_mamba2(json::object()).architecture, testing::mamba2_config(), 1);
  expect_refused(read_mamba2, {{"sliding_window", 4}}, {"unknown key \"sliding_window\""});
}

// Channels under one mean of the gated norm.
void expect_norm(const Architecture& architecture, std::int64_t published, std::int64_t transformers) {
  EXPECT_EQ(architecture.norm_group_size.of(NormSpan::published), published);
  EXPECT_EQ(architecture.norm_group_size.of(NormSpan::transformers), transformers);
}

TEST(ArchitectureConfigs, SpanOfTheGatedNorm) {
  expect_norm(read_mamba2(json::object()).architecture, 8, 88);
  expect_norm(read_mamba2({{"n_groups", 1}}).architecture, 88, 88);
  expect_norm(read_falcon(json::object()).architecture, 0, 0);
  expect_norm(read_falcon({{"mamba_rms_norm", true}}).architecture, 16, 16);
  expect_norm(read_zamba({{"mamba_ngroups", 11}}).architecture, 8, 8);
}

TEST(Mamba2Config, DefaultsOfThePublishedCode) {
  const Mamba2Config config = read_mamba2_config(ConfigFolder(json{{"model_type", "mamba2"}}).open());
  EXPECT_EQ(config.architecture.mamba.num_heads, 128);
  EXPECT_EQ(config.architecture.mamba.num_groups, 8);
  EXPECT_EQ(config.architecture.layers.size(), 64U);
  EXPECT_TRUE(config.residual_in_fp32 && config.use_conv_bias && !config.use_bias && !config.tie_word_embeddings);
  EXPECT_TRUE(std::isinf(config.time_step_limit.max));
}

TEST(Mamba2Config, Refusals) {
  expect_refused(read_mamba2, {{"expand", 3}}, {"num_heads", "132"});
  expect_refused(read_mamba2, {{"n_groups", 2}}, {"n_groups", "divisor of num_heads (11)"});
  expect_refused(read_mamba2, {{"head_dim", 4}}, {"head_dim", "multiple of 8"});
  expect_refused(read_mamba2, {{"hidden_act", "gelu"}}, {"hidden_act", "silu"});
  expect_refused(read_mamba2, {{"rms_norm", false}}, {"rms_norm", "true"});
  expect_refused(read_mamba2, {{"time_step_limit", {0.1}}}, {"time_step_limit", "[min, max]"});
}

TEST(FalconH1Config, AccountsForEveryKey) {
  expect_accounted(read_falcon(json::object()).architecture, testing::falcon_h1_config(), 1);
  expect_refused(read_falcon, {{"sliding_window", 4}}, {"unknown key \"sliding_window\""});
}

TEST(FalconH1Config, SizesThatMayBeWordsOrNull) {
  json config = testing::falcon_h1_config();
  config["mamba_d_head"] = "auto";
  config["mamba_d_ssm"] = nullptr;
  config["mamba_n_heads"] = 11;
  config["mamba_n_groups"] = 1;
  config["num_key_value_heads"] = nullptr;
  config.erase("head_dim");
  const FalconH1Config read = read_falcon_h1_config(ConfigFolder(config).open());
  EXPECT_EQ(read.architecture.mamba.head_dim, 8);  // 2 * 44 / 11
  EXPECT_EQ(read.architecture.num_kv_heads, 4);
  EXPECT_EQ(read.architecture.head_dim, 11);
  expect_accounted(read.architecture, config, 1);
}

TEST(FalconH1Config, Refusals) {
  expect_refused(read_falcon, {{"mamba_d_head", 16}}, {"mamba_n_heads", "48"});
  expect_refused(read_falcon, {{"mamba_n_groups", 4}}, {"mamba_n_groups", "divisor of mamba_n_heads (6)"});
  expect_refused(read_falcon, {{"num_key_value_heads", 3}}, {"num_key_value_heads", "divisor"});
  expect_refused(read_falcon, {{"ssm_multipliers", {1, 2}}}, {"ssm_multipliers", "5 finite numbers"});
  expect_refused(read_falcon, {{"mlp_multipliers", {1, "x"}}}, {"mlp_multipliers", "a list of numbers"});
  expect_refused(read_falcon, {{"hidden_act", "gelu"}}, {"hidden_act", "silu"});
  expect_refused(read_falcon, {{"rope_scaling", {{"type", "cubic"}}}}, {"rope_scaling.type", "cubic"});
}

TEST(Zamba2Config, AccountsForEveryKey) {
  expect_accounted(read_zamba(json::object()).architecture, testing::zamba2_config(), 1);
  expect_refused(read_zamba, {{"sliding_window", 4}}, {"unknown key \"sliding_window\""});
}

TEST(Zamba2Config, LayersThatAreNotListed) {
  json change = {{"layers_block_type", nullptr},
                 {"num_hidden_layers", nullptr},
                 {"hybrid_layer_ids", {6, 12, 18, 24, 30, 36, 42, 47, 51}}};
  const Architecture architecture = read_zamba(change).architecture;
  EXPECT_EQ(architecture.layers.size(), 54U);
  EXPECT_EQ(architecture.count(LayerKind::attention), 9);
  change["num_hidden_layers"] = 54;
  EXPECT_EQ(read_zamba(change).architecture.layers.size(), 54U);
  change["num_hidden_layers"] = 38;
  expect_refused(read_zamba, change, {"num_hidden_layers", "the default of layers_block_type has layers (54)"});
}

TEST(Zamba2Config, LongContextStretchesPositions) {
  const Zamba2Config config = read_zamba({{"use_long_context", true}});
  EXPECT_EQ(config.architecture.max_positions, 16384);
  EXPECT_NEAR(config.rotary->theta, 10000.0 * std::pow(8.0, 22.0 / 20.0), 1e-6);
  EXPECT_FALSE(read_zamba({{"use_mem_rope", false}}).rotary.has_value());
}

TEST(Zamba2Config, Refusals) {
  expect_refused(read_zamba, {{"layers_block_type", {"mamba", "attention"}}}, {"\"attention\" at layer 1"});
  expect_refused(read_zamba, {{"num_hidden_layers", 4}}, {"num_hidden_layers", "layers_block_type has layers (5)"});
  expect_refused(read_zamba, {{"num_key_value_heads", 2}}, {"num_key_value_heads", "adapters"});
  expect_refused(read_zamba, {{"n_mamba_heads", 10}}, {"n_mamba_heads", "divisor of mamba_expand * hidden_size (88)"});
  expect_refused(read_zamba, {{"num_attention_heads", 5}}, {"num_attention_heads", "divisor of 2 * hidden_size (88)"});
  expect_refused(read_zamba, {{"hybrid_layer_ids", {1, 2}}}, {"hybrid_layer_ids", "layers_block_type"});
  expect_refused(read_zamba, {{"attention_head_dim", 44}}, {"attention_head_dim", "22"});
  expect_refused(read_zamba, {{"hidden_act", "tanh"}}, {"hidden_act", "gelu"});
}

}  // namespace
}  // namespace replayeval
