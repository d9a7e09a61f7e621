// Tensors that folders know under several names, or cut in several ways.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <array>

#include "eval/model/weights.h"
#include "tests/eval/checkpoint/checkpoint_folder.h"
#include "tests/eval/checkpoint/expect_error.h"

namespace replayeval {
namespace {

const std::vector<std::string> parts = {"q", "k", "v"};

class StoredLayouts : public ::testing::Test {
 protected:
  // One tensor [rows, 2] under each of the names, counting on from one to the next.
  Checkpoint open(const std::vector<std::pair<std::string, std::int64_t>>& rows) {
    std::map<std::string, testing::StoredTensor> tensors;
    float next = 0.0F;
    for (const auto& [name, count] : rows) {
      std::vector<float> values;
      for (std::int64_t i = 0; i < 2 * count; ++i) values.push_back(next++);
      tensors["model." + name] = testing::float_tensor({count, 2}, values);
    }
    testing::write_bytes(folder_.path() / "config.json", "{}");
    testing::write_safetensors(folder_.path() / "model.safetensors", tensors);
    return Checkpoint::open(folder_.path());
  }
  static WeightLoader loader(const Checkpoint& checkpoint, const std::string& probe,
                             at::Device device = at::Device(at::kCPU), std::optional<std::uint64_t> seed = {}) {
    return {checkpoint, device, {"model."}, probe, seed};
  }
  static at::Tensor counted(std::int64_t rows) { return at::arange(2 * rows).to(at::kFloat).view({rows, 2}); }

  TemporaryFolder folder_;
};

TEST_F(StoredLayouts, PartsAreJoinedHoweverTheyAreCut) {
  for (const auto& cut : std::vector<std::array<std::int64_t, 3>>{{2, 2, 5}, {3, 3, 3}, {1, 7, 1}}) {
    const Checkpoint checkpoint = open({{"q", cut[0]}, {"k", cut[1]}, {"v", cut[2]}});
    WeightLoader weights = loader(checkpoint, "q");
    EXPECT_TRUE(at::equal(weights.load_joined(parts, {9, 2}, at::kFloat), counted(9)));
    EXPECT_EQ(weights.parameter_count(), 18);
    EXPECT_NO_THROW(weights.finish({}));
  }
}

TEST_F(StoredLayouts, PartsOfAnotherSumAreRefused) {
  for (const auto& cut : std::vector<std::array<std::int64_t, 3>>{{2, 2, 6}, {3, 3, 2}, {2, 8, 1}, {12, 1, 1}}) {
    const Checkpoint checkpoint = open({{"q", cut[0]}, {"k", cut[1]}, {"v", cut[2]}});
    WeightLoader weights = loader(checkpoint, "q");
    testing::expect_error<CheckpointError>(
        [&] {
          weights.load_joined(parts, {9, 2}, at::kFloat);
        },
        {"model.safetensors", "has shape [", "expected [", "by config.json"});
  }
}

TEST_F(StoredLayouts, AMissingPartIsNamed) {
  const Checkpoint checkpoint = open({{"q", 3}, {"v", 3}});
  WeightLoader weights = loader(checkpoint, "q");
  testing::expect_error<CheckpointError>(
      [&] {
        weights.load_joined(parts, {9, 2}, at::kFloat);
      },
      {"model.k", "missing"});
}

TEST_F(StoredLayouts, WithoutALookUpPartsAreEqual) {
  const Checkpoint checkpoint = open({{"q", 2}, {"k", 2}, {"v", 6}});
  EXPECT_EQ(loader(checkpoint, "q", at::Device(at::kMeta)).load_joined(parts, {10, 2}, at::kFloat).numel(), 20);
  const at::Tensor random = loader(checkpoint, "q", at::Device(at::kCPU), 7).load_joined(parts, {10, 2}, at::kFloat);
  EXPECT_FALSE(at::equal(random, counted(10)));
  EXPECT_TRUE(at::isfinite(random).all().item<bool>());
}

TEST_F(StoredLayouts, TheFirstNameThatIsThereCounts) {
  const Checkpoint checkpoint = open({{"q.weight", 1}, {"k.weight", 1}, {"v", 1}});
  WeightLoader weights = loader(checkpoint, "v");
  EXPECT_EQ(weights.stored_name({"z", "k", "q"}), "k");
  EXPECT_EQ(weights.stored_name({"z", "y"}), "z");
  EXPECT_EQ(weights.stored_name({"k", "v"}, ""), "v");
  EXPECT_EQ(loader(checkpoint, "v", at::Device(at::kCPU), 7).stored_name({"z", "k"}), "z");
}

}  // namespace
}  // namespace replayeval
