// What holds for every architecture, on small models of random weights. That their logits are right is for the
// comparisons with transformers (test_parity_*.py).
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <map>

#include "eval/model/architecture.h"
#include "eval/model/footprint.h"
#include "eval/model/model.h"
#include "tests/eval/executors/arms.h"
#include "tests/eval/model/config_folder.h"
#include "tests/eval/model/small_configs.h"
#include "tests/kernels/on_device.h"

namespace replayeval {
namespace {

using testing::exact_arm;
using testing::replay_arm;

std::map<std::string, nlohmann::json> configs() {
  std::map<std::string, nlohmann::json> all = {{"mamba2", testing::mamba2_config()},
                                               {"falcon_h1, gate alone", testing::falcon_h1_config()},
                                               {"qwen3_next", testing::qwen3_next_config()},
                                               {"qwen3_5", testing::qwen3_5_config()},
                                               {"qwen3_5_moe, wrapped", testing::qwen3_5_moe_config()},
                                               {"zamba2", testing::zamba2_config()},
                                               {"olmo_hybrid", testing::olmo_hybrid_config()},
                                               {"kimi_linear", testing::kimi_linear_config()}};
  nlohmann::json falcon = testing::falcon_h1_config();
  falcon["mamba_rms_norm"] = true;
  all["falcon_h1, norm before gate"] = falcon;
  falcon["mamba_norm_before_gate"] = false;
  all["falcon_h1, gate before norm"] = falcon;
  nlohmann::json dynamic = testing::zamba2_config();
  dynamic["max_position_embeddings"] = 10;
  dynamic["rope_scaling"] = {{"type", "dynamic"}, {"factor", 4.0}};
  all["zamba2, dynamic positions"] = dynamic;
  return all;
}

class Architectures : public testing::OnDevice {
 protected:
  void SetUp() override {
    OnDevice::SetUp();
    at::manual_seed(0);
  }
  std::unique_ptr<Model> load(const nlohmann::json& config, Dtype compute) const {
    ModelOptions options;
    options.device = GetParam();
    options.compute_dtype = compute;
    options.random_seed = 3;
    return load_model(testing::ConfigFolder(config).open(), options);
  }
  static std::vector<RingForm> ring_forms(const Model& model) {
    return testing::ring_forms(model.mixers().front()->family());
  }
  static at::Tensor run(const Model& model, const std::vector<Arm>& arms, const at::Tensor& ids, Mode mode) {
    const auto cache = model.make_cache(arms, ids.size(0), ids.size(1));
    return model.logits(model.forward(ids, *cache, mode)).cpu();
  }
};

at::Tensor random_ids(std::int64_t batch, std::int64_t tokens) {
  return at::randint(101, {batch, tokens}, at::TensorOptions().dtype(at::kLong));
}

// As a share of the range.
double difference(const at::Tensor& a, const at::Tensor& b) {
  return (a - b).abs().max().item<double>() / (b.max() - b.min()).item<double>();
}

TEST_P(Architectures, IdenticalArmsGiveIdenticalLogits) {
  std::vector<Arm> arms = {exact_arm("a"), replay_arm("r", Dtype::bfloat16, Dtype::bfloat16), exact_arm("b"),
                           replay_arm("s", Dtype::bfloat16, Dtype::bfloat16), exact_arm("c")};
  for (const auto& [name, config] : configs())
    for (const Dtype compute : {Dtype::float32, Dtype::bfloat16}) {
      const auto model = load(config, compute);
      for (const RingForm form : ring_forms(*model))
        for (const std::int64_t batch : {1, 3})
          for (const Mode mode : {Mode::teacher_forced, Mode::stepwise}) {
            SCOPED_TRACE(name + ", " + std::string(dtype_name(compute)) + ", batch " + std::to_string(batch));
            for (Arm& arm : arms) arm.ring_form = form;
            const at::Tensor logits = run(*model, arms, random_ids(batch, 13), mode);
            EXPECT_TRUE(at::isfinite(logits).all().item<bool>());
            EXPECT_TRUE(at::equal(logits[0], logits[2]) && at::equal(logits[0], logits[4]));
            EXPECT_TRUE(at::equal(logits[1], logits[3]));
            EXPECT_FALSE(at::equal(logits[0], logits[1]));
          }
    }
}

TEST_P(Architectures, ModesAndBlocksAgree) {
  for (const auto& [name, config] : configs()) {
    SCOPED_TRACE(name);
    const auto model = load(config, Dtype::float32);
    const at::Tensor ids = random_ids(2, 40);
    std::vector<Arm> arms = {exact_arm("exact")};
    for (const RingForm form : ring_forms(*model)) {
      arms.push_back(replay_arm("replay", Dtype::float32, Dtype::float32));
      arms.back().ring_form = form;
    }
    const at::Tensor block = run(*model, arms, ids, Mode::teacher_forced);
    EXPECT_LT(difference(run(*model, arms, ids, Mode::stepwise), block), 1e-5);
    for (std::size_t arm = 1; arm < arms.size(); ++arm)
      EXPECT_LT(difference(block[static_cast<std::int64_t>(arm)], block[0]), 1e-5);
    const auto cache = model->make_cache(arms, 2, 40);
    const at::Tensor first = model->forward(ids.narrow(1, 0, 17), *cache, Mode::teacher_forced);
    const at::Tensor second = model->forward(ids.narrow(1, 17, 23), *cache, Mode::teacher_forced);
    EXPECT_LT(difference(model->logits(at::cat({first, second}, 2)).cpu(), block), 1e-5);
  }
}

TEST_P(Architectures, MemoryIsWhatTheConfigurationSays) {
  for (const auto& [name, config] : configs()) {
    SCOPED_TRACE(name);
    const Architecture architecture = describe_architecture(testing::ConfigFolder(config).open());
    const auto model = load(config, Dtype::float32);
    EXPECT_EQ(static_cast<std::int64_t>(model->mixers().size()), architecture.state_space_layers());
    EXPECT_EQ(model->weight_totals().layer_bytes.size(), architecture.layers.size());
    for (const RingForm form : ring_forms(*model)) {
      Arm arm = replay_arm("replay", Dtype::bfloat16, Dtype::float32, 6);
      arm.ring_form = form;
      const auto cache = model->make_cache({arm}, 2, 8);
      EXPECT_EQ(cache->sequence_bytes(0).state, state_bytes(architecture, Dtype::bfloat16));
      EXPECT_EQ(cache->sequence_bytes(0).ring, ring_bytes(architecture, form, 6, Dtype::float32));
    }
  }
}

REPLAYEVAL_ON_EACH_DEVICE(Architectures);

TEST(LayersThatHoldBoth, CountAsBoth) {
  const Architecture falcon = describe_architecture(testing::ConfigFolder(testing::falcon_h1_config()).open());
  EXPECT_EQ(falcon.layers.size(), 2U);
  EXPECT_EQ(falcon.count(LayerKind::mamba2), 2);
  EXPECT_EQ(falcon.count(LayerKind::attention), 2);
  EXPECT_EQ(falcon.count(LayerKind::mlp), 0);
  const Architecture zamba = describe_architecture(testing::ConfigFolder(testing::zamba2_config()).open());
  EXPECT_EQ(zamba.layers.size(), 5U);
  EXPECT_EQ(zamba.count(LayerKind::mamba2), 5);
  EXPECT_EQ(zamba.count(LayerKind::attention), 3);
  EXPECT_EQ(zamba.head_dim, 22);
  EXPECT_EQ(kv_bytes_per_token(zamba, Dtype::bfloat16), 3 * 2 * 4 * 22 * 2);
}

}  // namespace
}  // namespace replayeval
