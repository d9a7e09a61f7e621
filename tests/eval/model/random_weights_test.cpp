#include "eval/model/random_weights.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "eval/model/model.h"
#include "tests/eval/model/tiny_nemotron_h.h"

namespace replayeval {
namespace {

at::Tensor filled(const std::string& name, const std::vector<std::int64_t>& shape, std::uint64_t seed = 1,
                  at::ScalarType type = at::kFloat) {
  at::Tensor weight = at::full(shape, 9.0, at::TensorOptions().dtype(type));
  fill_random(weight, name, seed);
  return weight;
}

TEST(RandomWeights, SeedAndNameDecide) {
  const at::Tensor once = filled("layers.0.up_proj.weight", {64, 32});
  EXPECT_TRUE(at::equal(once, filled("layers.0.up_proj.weight", {64, 32})));
  EXPECT_FALSE(at::equal(once, filled("layers.1.up_proj.weight", {64, 32})));
  EXPECT_FALSE(at::equal(once, filled("layers.0.up_proj.weight", {64, 32}, 2)));
}

TEST(RandomWeights, NamesChooseTheDistribution) {
  const at::Tensor wide = filled("x.up_proj.weight", {512, 400});
  EXPECT_NEAR(wide.std().item<double>(), 0.05, 0.001);
  EXPECT_NEAR(wide.mean().item<double>(), 0.0, 0.001);
  EXPECT_NEAR(filled("embeddings.weight", {500, 400}).std().item<double>(), 0.02, 0.001);
  EXPECT_NEAR(filled("x.w.weight", {500, 400}, 1, at::kBFloat16).to(at::kFloat).std().item<double>(), 0.05, 0.001);
  for (const char* name : {"a.norm.weight", "a.norm_f.weight", "a.input_layernorm.weight", "a.mixer.D"})
    EXPECT_TRUE(at::equal(filled(name, {16}), at::ones({16}))) << name;
  for (const char* name : {"a.conv1d.bias", "a.gate.e_score_correction_bias"})
    EXPECT_TRUE(at::equal(filled(name, {16}), at::zeros({16}))) << name;
  const at::Tensor decay = filled("a.A_log", {16}).exp();
  EXPECT_TRUE(at::allclose(decay, at::arange(1, 17).to(at::kFloat)));
  const at::Tensor dt = at::softplus(filled("a.dt_bias", {4000}));
  EXPECT_GE(dt.min().item<double>(), 0.99e-3);
  EXPECT_LE(dt.max().item<double>(), 1.01e-1);
  EXPECT_NEAR(dt.log().mean().item<double>(), std::log(1e-2), 0.1);
}

class RandomModel : public ::testing::Test {
 protected:
  RandomModel() {
    testing::write_bytes(tiny_.folder() / "config.json", tiny_.config.dump());
    options_.random_seed = 5;
  }
  at::Tensor logits(std::uint64_t seed) const {
    ModelOptions options = options_;
    options.random_seed = seed;
    const auto model = load_model(Checkpoint::open_config(tiny_.folder()), options);
    Arm arm;
    arm.name = "exact";
    const auto cache = model->make_cache({arm}, 1, 8);
    const at::Tensor ids = at::arange(8).view({1, 8});
    return model->logits(model->forward(ids, *cache, Mode::teacher_forced));
  }
  testing::TinyNemotronH tiny_;
  ModelOptions options_;
};

TEST_F(RandomModel, NeedsNoWeightsAndHasFiniteLogits) {
  const at::Tensor once = logits(5);
  EXPECT_TRUE(at::isfinite(once).all().item<bool>());
  EXPECT_GT(once.std().item<double>(), 0.1);
  EXPECT_TRUE(at::equal(once, logits(5)));
  EXPECT_FALSE(at::equal(once, logits(6)));
}

TEST_F(RandomModel, CountsAsTheStoredModelDoes) {
  const auto random = load_model(Checkpoint::open_config(tiny_.folder() / "config.json"), options_);
  const WeightTotals shapes = weight_totals(Checkpoint::open_config(tiny_.folder()), {});
  const auto stored = load_model(tiny_.open(), {});
  for (const WeightTotals& totals : {random->weight_totals(), shapes}) {
    EXPECT_EQ(totals.parameters, stored->parameter_count());
    EXPECT_EQ(totals.layer_bytes, stored->weight_totals().layer_bytes);
    EXPECT_EQ(totals.embedding_bytes, 101 * 44 * 4);
    EXPECT_EQ(totals.head_bytes, (101 * 44 + 44) * 4);
  }
}

TEST_F(RandomModel, StoredWeightsAreRefusedWhereThereAreNone) {
  EXPECT_THROW(load_model(Checkpoint::open_config(tiny_.folder()), {}), CheckpointError);
}

}  // namespace
}  // namespace replayeval
