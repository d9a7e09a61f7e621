#include "eval/model/olmo_hybrid_config.h"

#include <gtest/gtest.h>

#include "tests/eval/checkpoint/expect_error.h"
#include "tests/eval/model/config_folder.h"
#include "tests/eval/model/small_configs.h"

namespace replayeval {
namespace {

using nlohmann::json;

OlmoHybridConfig read(const json& config) { return read_olmo_hybrid_config(testing::ConfigFolder(config).open()); }

// The keys of `change` instead of the small configuration's; those in `removed` not at all.
OlmoHybridConfig read_changed(const json& change, const std::vector<std::string>& removed = {}) {
  json config = testing::olmo_hybrid_config();
  for (const std::string& key : removed) config.erase(key);
  config.update(change);
  return read(config);
}

void expect_refused(const json& change, std::vector<std::string> parts) {
  parts.push_back("config.json: ");
  testing::expect_error<CheckpointError>([&] { read_changed(change); }, parts);
}

TEST(OlmoHybridConfig, ReadsEveryKey) {
  const OlmoHybridConfig config = read(testing::olmo_hybrid_config());
  const Architecture& a = config.architecture;
  EXPECT_EQ(a.layers, (std::vector<LayerKind>{LayerKind::gated_delta, LayerKind::attention, LayerKind::gated_delta,
                                              LayerKind::attention}));
  EXPECT_EQ(a.delta.num_key_heads, 3);
  EXPECT_EQ(a.delta.num_value_heads, 3);
  EXPECT_EQ(a.delta.key_dim, 24);
  EXPECT_EQ(a.delta.value_dim, 48);
  EXPECT_EQ(a.conv_dim(), 3 * (24 + 24 + 48));
  EXPECT_EQ(a.num_heads, 5);
  EXPECT_EQ(a.head_dim, 12);
  EXPECT_TRUE(config.allow_neg_eigval);
  EXPECT_FALSE(config.attention_bias || config.tie_word_embeddings);
  EXPECT_EQ(a.keys_ignored, (std::vector<std::string>{"architectures"}));
  EXPECT_EQ(a.keys_read.size() + 1, testing::olmo_hybrid_config().size());
  EXPECT_EQ(a.published_ring_form(), RingForm::deltas);
}

TEST(OlmoHybridConfig, SizesThatAreNotSaid) {
  const OlmoHybridConfig config =
      read_changed({{"hidden_size", 160}, {"num_hidden_layers", 9}},
                   {"layer_types", "linear_num_key_heads", "linear_num_value_heads", "linear_key_head_dim",
                    "linear_value_head_dim", "linear_conv_kernel_dim", "linear_allow_neg_eigval"});
  const Architecture& a = config.architecture;
  EXPECT_EQ(a.delta.num_key_heads, 5);
  EXPECT_EQ(a.delta.num_value_heads, 5);
  EXPECT_EQ(a.delta.key_dim, 24);  // 0.75 * 160 / 5
  EXPECT_EQ(a.delta.value_dim, 48);
  EXPECT_EQ(a.conv_kernel, 4);
  EXPECT_TRUE(config.allow_neg_eigval);
  EXPECT_EQ(a.count(LayerKind::attention), 2);
  EXPECT_TRUE(a.layers[3] == LayerKind::attention && a.layers[7] == LayerKind::attention);
  const Architecture few = read_changed({{"layer_types", nullptr}, {"num_hidden_layers", 3}}).architecture;
  EXPECT_EQ(few.layers, (std::vector<LayerKind>{LayerKind::gated_delta, LayerKind::gated_delta, LayerKind::attention}));
}

TEST(OlmoHybridConfig, OnlyAWrittenNullMeansNoPositions) {
  const auto rotary = [](const json& change, const std::vector<std::string>& removed = {"rope_parameters"}) {
    return read_changed(change, removed).rotary;
  };
  EXPECT_FALSE(rotary(json::object(), {}).has_value());
  EXPECT_FALSE(rotary({{"rope_theta", nullptr}}).has_value());
  EXPECT_FALSE(rotary({{"rope_theta", nullptr}, {"rope_scaling", nullptr}}).has_value());
  EXPECT_FALSE(rotary({{"rope_theta", nullptr}, {"rope_parameters", {{"rope_type", "default"}}}}).has_value());
  EXPECT_FALSE(rotary({{"rope_theta", 500.0}, {"rope_parameters", {{"rope_theta", nullptr}}}}).has_value());
  EXPECT_EQ(rotary(json::object()).value().theta, 10000.0);
  EXPECT_EQ(rotary({{"rope_parameters", nullptr}}).value().theta, 10000.0);
  EXPECT_EQ(rotary({{"rope_parameters", {{"rope_type", "default"}}}}).value().theta, 10000.0);
  EXPECT_EQ(rotary({{"rope_theta", nullptr}, {"rope_parameters", {{"rope_theta", 500.0}}}}).value().theta, 500.0);
  EXPECT_EQ(rotary({{"rope_theta", 500.0}}).value().rotary_dim, 12);
}

TEST(OlmoHybridConfig, RefusesWhatMakesNoSense) {
  expect_refused({{"sliding_window", 4}}, {"unknown key \"sliding_window\""});
  expect_refused({{"linear_key_head_dim", 20}}, {"linear_key_head_dim", "20", "multiple of 8 up to 256"});
  expect_refused({{"linear_value_head_dim", 264}}, {"linear_value_head_dim", "264", "multiple of 8 up to 256"});
  expect_refused({{"linear_num_value_heads", 4}}, {"linear_num_value_heads", "multiple of linear_num_key_heads (3)"});
  expect_refused({{"linear_conv_kernel_dim", 9}}, {"linear_conv_kernel_dim", "2 to 8"});
  expect_refused({{"linear_use_gate", false}}, {"linear_use_gate", "true"});
  expect_refused({{"layer_types", {"linear_attention", "full_attention"}}},
                 {"num_hidden_layers", "4", "layer_types has layers (2)"});
  expect_refused({{"layer_types", json::array()}, {"num_hidden_layers", nullptr}},
                 {"layer_types", "at least one layer"});
  expect_refused({{"layer_types", {"linear_attention", "mamba"}}}, {"\"mamba\" at layer 1"});
  expect_refused({{"hidden_act", "gelu"}}, {"hidden_act", "silu"});
  expect_refused({{"num_key_value_heads", 2}}, {"num_key_value_heads", "divisor of num_attention_heads (5)"});
  expect_refused({{"rope_parameters", {{"rope_type", "cubic"}}}}, {"rope_parameters.rope_type", "cubic"});
  expect_refused({{"linear_allow_neg_eigval", 1}}, {"linear_allow_neg_eigval", "true or false"});
}

}  // namespace
}  // namespace replayeval
