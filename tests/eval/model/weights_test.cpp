// What can be wrong with the weights of a folder whose headers are right.
#include <gtest/gtest.h>

#include <cstring>
#include <limits>

#include "eval/model/model.h"
#include "tests/eval/checkpoint/expect_error.h"
#include "tests/eval/model/tiny_nemotron_h.h"

namespace replayeval {
namespace {

using testing::TinyNemotronH;

void expect_refused(const TinyNemotronH& tiny, const std::vector<std::string>& parts,
                    const ModelOptions& options = {}) {
  testing::expect_error<CheckpointError>([&] { load_model(tiny.open(), options); }, parts);
}

void put(testing::StoredTensor& tensor, std::size_t element, float value) {
  std::memcpy(tensor.bytes.data() + element * sizeof(float), &value, sizeof(float));
}

TEST(Weights, LoadAndCount) {
  const TinyNemotronH tiny;
  std::int64_t elements = 0;
  for (const auto& [name, tensor] : tiny.tensors) elements += static_cast<std::int64_t>(tensor.bytes.size() / 4);
  const auto model = load_model(tiny.open(), {});
  EXPECT_EQ(model->parameter_count(), elements);
  EXPECT_EQ(model->mixers().size(), 2U);
  EXPECT_EQ(model->mixer_layers(), (std::vector<std::int64_t>{0, 3}));
  EXPECT_EQ(model->model_type(), "nemotron_h");
}

TEST(Weights, RefuseAMissingTensor) {
  for (const char* name : {"backbone.embeddings.weight", "backbone.layers.0.mixer.conv1d.bias",
                           "backbone.norm_f.weight", "backbone.layers.2.mixer.k_proj.weight", "lm_head.weight"}) {
    TinyNemotronH tiny;
    tiny.tensors.erase(name);
    expect_refused(tiny, {tiny.folder().string(), std::string("\"") + name + "\"", "missing"});
  }
}

TEST(Weights, RefuseAnotherShape) {
  TinyNemotronH tiny;
  tiny.tensors["backbone.layers.0.mixer.conv1d.weight"].shape = {192, 4, 1};
  expect_refused(tiny, {"model.safetensors", "conv1d.weight", "[192, 4, 1]", "expected [192, 1, 4]"});
}

TEST(Weights, RefuseAnImpossibleSizeBeforeMemoryIsAskedFor) {
  TinyNemotronH tiny;
  tiny.config["vocab_size"] = std::int64_t{1} << 31;
  tiny.config["hidden_size"] = 1024;
  expect_refused(tiny,
                 {"model.safetensors", "backbone.embeddings.weight", "expected [2147483648, 1024] by config.json"});
  ModelOptions random;
  random.random_seed = 1;
  const std::vector<std::string> parts = {"config.json", "backbone.embeddings.weight", "[2147483648, 1024]",
                                          "at most 1099511627776 elements"};
  expect_refused(tiny, parts, random);
  testing::expect_error<CheckpointError>([&] { weight_totals(tiny.open(), {}); }, parts);
}

TEST(Weights, RefuseAnotherType) {
  TinyNemotronH tiny;
  tiny.tensors["backbone.layers.0.mixer.D"].dtype = "I32";
  expect_refused(tiny, {"model.safetensors", "layers.0.mixer.D", "I32", "F32, BF16, F16 or F8_E4M3"});
}

TEST(Weights, RefuseNotANumberAndInfinity) {
  TinyNemotronH tiny;
  put(tiny.tensors["backbone.layers.1.mixer.up_proj.weight"], 2 * 44 + 7, std::numeric_limits<float>::quiet_NaN());
  put(tiny.tensors["backbone.layers.1.mixer.up_proj.weight"], 9 * 44, std::numeric_limits<float>::infinity());
  expect_refused(tiny, {"model.safetensors", "up_proj.weight", "NaN or infinity", "[2, 7]", "finite"});
}

TEST(Weights, RefuseWhatTheComputeDtypeCannotHold) {
  TinyNemotronH tiny;
  put(tiny.tensors["backbone.layers.1.mixer.up_proj.weight"], 3, 1e6F);
  expect_refused(tiny, {"up_proj.weight", "does not fit Half", "[0, 3]"}, {DeviceKind::cpu, Dtype::float16});
  EXPECT_NO_THROW(load_model(tiny.open(), {DeviceKind::cpu, Dtype::bfloat16}));
}

TEST(Weights, RefuseATensorWithoutAPlace) {
  TinyNemotronH tiny;
  tiny.tensors["backbone.layers.2.mixer.q_proj.bias"] = testing::float_tensor({1}, {0.0F});
  expect_refused(tiny, {"model.safetensors", "layers.2.mixer.q_proj.bias", "no place"});
}

TEST(Weights, SkipMultiTokenPrediction) {
  TinyNemotronH tiny;
  tiny.tensors["mtp.layers.0.norm.weight"] = testing::float_tensor({1}, {0.0F});
  EXPECT_NO_THROW(load_model(tiny.open(), {}));
}

TEST(Weights, TheHeadIsTiedOnlyWhereConfigured) {
  TinyNemotronH tiny;
  const std::int64_t whole = load_model(tiny.open(), {})->parameter_count();
  tiny.tensors.erase("lm_head.weight");
  expect_refused(tiny, {"lm_head.weight", "missing", "does not tie"});
  tiny.config["tie_word_embeddings"] = true;
  EXPECT_EQ(load_model(tiny.open(), {})->parameter_count(), whole - 101 * 44);
}

}  // namespace
}  // namespace replayeval
