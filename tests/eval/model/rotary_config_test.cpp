#include "eval/model/rotary_config.h"

#include <gtest/gtest.h>

#include "tests/eval/checkpoint/expect_error.h"
#include "tests/eval/model/tiny_nemotron_h.h"

namespace replayeval {
namespace {

using nlohmann::json;

RotaryConfig read(const json& keys, RotaryRules rules = {}) {
  testing::TinyNemotronH tiny;
  tiny.config.merge_patch(keys);
  const Checkpoint checkpoint = tiny.open();
  ConfigReader reader(checkpoint);
  rules.head_dim = rules.head_dim == 0 ? 16 : rules.head_dim;
  rules.max_positions = 256;
  return read_rotary(reader, rules);
}

void expect_refused(const json& keys, std::vector<std::string> parts, const RotaryRules& rules = {}) {
  parts.push_back("config.json: ");
  testing::expect_error<CheckpointError>([&] { read(keys, rules); }, parts);
}

TEST(RotaryConfig, NothingSaidIsTheStandard) {
  const RotaryConfig config = read(json::object());
  EXPECT_EQ(config.kind, RotaryKind::standard);
  EXPECT_EQ(config.theta, 10000.0);
  EXPECT_EQ(config.rotary_dim, 16);
  EXPECT_EQ(config.attention_factor, 1.0);
}

TEST(RotaryConfig, WhichPlaceWins) {
  EXPECT_EQ(read({{"rope_theta", 5}, {"rope_parameters", {{"rope_theta", 7}}}}).theta, 7.0);
  EXPECT_EQ(read({{"rope_theta", 5}, {"rope_parameters", json::object()}}).theta, 5.0);
  const json both = {{"rope_scaling", {{"type", "linear"}, {"factor", 2}}}, {"rope_parameters", {{"rope_theta", 7}}}};
  EXPECT_EQ(read(both).kind, RotaryKind::linear);
  EXPECT_EQ(read(both).theta, 10000.0);
  EXPECT_EQ(read({{"partial_rotary_factor", 0.5}}).rotary_dim, 8);
  EXPECT_EQ(read({{"partial_rotary_factor", 0.5}, {"rope_parameters", {{"partial_rotary_factor", 0.25}}}}).rotary_dim,
            4);
  const json yarn = {{"original_max_position_embeddings", 32},
                     {"rope_parameters", {{"rope_type", "yarn"}, {"original_max_position_embeddings", 64}}}};
  EXPECT_EQ(read(yarn).original_max_positions, 32);
  EXPECT_EQ(read(yarn).factor, 8.0);  // 256 / 32
}

TEST(RotaryConfig, RulesOfAnArchitecture) {
  RotaryRules half;
  half.partial = 0.5;
  half.top_level_partial = false;
  EXPECT_EQ(read({{"partial_rotary_factor", 1.0}}, half).rotary_dim, 8);
  EXPECT_EQ(read({{"rope_parameters", {{"partial_rotary_factor", 1.0}}}}, half).rotary_dim, 16);
  RotaryRules whole;
  whole.whole_heads = true;
  EXPECT_EQ(read({{"partial_rotary_factor", 0.5}}, whole).rotary_dim, 16);
  expect_refused({{"rope_scaling", {{"type", "linear"}, {"factor", 2}, {"partial_rotary_factor", 0.5}}}},
                 {"rope_scaling.partial_rotary_factor", "0.5", "whole heads"}, whole);
}

TEST(RotaryConfig, Refusals) {
  expect_refused({{"rope_scaling", "yarn"}}, {"rope_scaling", "an object"});
  expect_refused({{"rope_scaling", {{"type", "proportional"}}}}, {"rope_scaling.type", "proportional", "llama3"});
  expect_refused({{"rope_scaling", {{"type", "linear"}}}}, {"rope_scaling.factor", "is missing"});
  expect_refused({{"rope_scaling", {{"type", "linear"}, {"factor", -2}}}}, {"rope_scaling.factor", "-2", "above 0"});
  expect_refused({{"rope_parameters", {{"sections", {1, 2}}}}}, {"unknown key \"rope_parameters.sections\""});
  expect_refused({{"rope_theta", 0}}, {"rope_theta", "above 0"});
  expect_refused({{"rope_theta", 1}}, {"rope_theta", "above 1"});
  expect_refused({{"partial_rotary_factor", 0.3125}}, {"partial_rotary_factor", "even number of a head's 16"});
  expect_refused({{"partial_rotary_factor", 1.5}}, {"partial_rotary_factor", "at most 1"});
  expect_refused({{"rope_scaling", {{"type", "dynamic"}, {"factor", 2}, {"partial_rotary_factor", 0.125}}}},
                 {"rope_type", "dynamic needs at least 4"});
  const json factors = json(std::vector<double>(8, 1.0));
  expect_refused({{"rope_scaling", {{"type", "longrope"}, {"short_factor", factors}, {"long_factor", {1.0}}}}},
                 {"rope_scaling.long_factor", "8 numbers"});
  expect_refused({{"rope_scaling", {{"type", "llama3"}, {"factor", 2}, {"low_freq_factor", 1}}}},
                 {"rope_scaling.high_freq_factor", "is missing"});
  expect_refused(
      {{"rope_scaling", {{"type", "llama3"}, {"factor", 2}, {"low_freq_factor", 4}, {"high_freq_factor", 4}}}},
      {"rope_scaling.high_freq_factor", "more than low_freq_factor"});
  expect_refused({{"rope_scaling", {{"type", "yarn"}, {"factor", 2}, {"beta_fast", 1}, {"beta_slow", 2}}}},
                 {"rope_scaling.beta_slow", "beta_slow <= beta_fast"});
}

}  // namespace
}  // namespace replayeval
