// Every stored form of a weight against arithmetic written out here.
#include "eval/model/weight_reader.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "eval/model/weights.h"
#include "tests/eval/checkpoint/checkpoint_folder.h"
#include "tests/eval/checkpoint/expect_error.h"

namespace replayeval {
namespace {

using testing::StoredTensor;
using testing::Tensors;

StoredTensor stored(const std::string& dtype, const at::Tensor& values) {
  const at::Tensor dense = values.contiguous();
  return {dtype, values.sizes().vec(), std::string(static_cast<const char*>(dense.const_data_ptr()), dense.nbytes())};
}

class WeightReader : public ::testing::Test {
 protected:
  Checkpoint open(const Tensors& tensors, const std::string& config = "{}") const {
    testing::write_bytes(folder_.path() / "config.json", config);
    testing::write_safetensors(folder_.path() / "model.safetensors", tensors);
    return Checkpoint::open(folder_.path());
  }
  static at::Tensor load(const Checkpoint& checkpoint, at::ScalarType type, const std::string& name = "w") {
    WeightLoader loader(checkpoint, at::Device(at::kCPU), {""}, name);
    at::Tensor weight = loader.load(name, checkpoint.tensor(name).shape, type);
    loader.finish({});
    return weight;
  }
  void expect_refused(const Tensors& tensors, const std::vector<std::string>& parts,
                      at::ScalarType type = at::kFloat) const {
    const Checkpoint checkpoint = open(tensors);
    testing::expect_error<CheckpointError>([&] { load(checkpoint, type); }, parts);
  }

  TemporaryFolder folder_;
};

TEST_F(WeightReader, ConvertsBetweenAllTypes) {
  at::manual_seed(1);
  const at::Tensor values = at::randn({37, 53});
  for (const auto& [name, from] : {std::pair("F32", at::kFloat), {"BF16", at::kBFloat16}, {"F16", at::kHalf}})
    for (const at::ScalarType to : {at::kFloat, at::kBFloat16, at::kHalf}) {
      const at::Tensor kept = values.to(from);
      EXPECT_TRUE(at::equal(load(open({{"w", stored(name, kept)}}), to), kept.to(to))) << name << " to " << to;
    }
}

TEST_F(WeightReader, TakesTensorsThatAreNotAligned) {
  at::manual_seed(2);
  const at::Tensor values = at::randn({5, 7});
  StoredTensor odd{"U8", {3}, "abc"};
  const Checkpoint checkpoint = open({{"a", odd}, {"w", stored("F32", values)}});
  const TensorView& view = checkpoint.tensor("w");
  at::Tensor read = at::empty({5, 7});
  read_weight(checkpoint, view, nullptr, read, Transfer::mapped);
  EXPECT_TRUE(at::equal(read, values));
}

TEST_F(WeightReader, BothTransfersAndManyChunksGiveTheSame) {
  at::manual_seed(3);
  const at::Tensor values = at::randn({5, 1 << 20}).to(at::kBFloat16);  // 10 MiB as bfloat16
  const at::Tensor wide = at::randn({9, 1 << 20});                      // 36 MiB as float32: three chunks
  const Checkpoint checkpoint = open({{"v", stored("BF16", values)}, {"w", stored("F32", wide)}});
  for (const Transfer transfer : {Transfer::mapped, Transfer::staged}) {
    at::Tensor narrow = at::empty({5, 1 << 20}), large = at::empty({9, 1 << 20}, at::kBFloat16);
    read_weight(checkpoint, checkpoint.tensor("v"), nullptr, narrow, transfer);
    read_weight(checkpoint, checkpoint.tensor("w"), nullptr, large, transfer);
    EXPECT_TRUE(at::equal(narrow, values.to(at::kFloat)));
    EXPECT_TRUE(at::equal(large, wide.to(at::kBFloat16)));
  }
}

TEST_F(WeightReader, FindsANotANumberInALaterChunk) {
  at::Tensor wide = at::ones({9, 1 << 20});
  wide[7][12345] = std::nanf("");
  wide[8][1] = INFINITY;
  expect_refused({{"w", stored("F32", wide)}}, {"tensor \"w\"", "NaN or infinity", "[7, 12345]"});
}

TEST_F(WeightReader, RefusesWhatATypeCannotHold) {
  at::Tensor large = at::ones({3, 4});
  large[2][1] = 3.4e38F;
  expect_refused({{"w", stored("F32", large)}}, {"does not fit BFloat16", "[2, 1]"}, at::kBFloat16);
  expect_refused({{"w", stored("BF16", large.mul(0.5).to(at::kBFloat16))}}, {"does not fit Half", "[2, 1]"}, at::kHalf);
}

// The float8 values and, in float64, what they mean with scales spread over them.
struct Float8 {
  at::Tensor bytes, values;
  explicit Float8(const std::vector<std::int64_t>& shape) {
    at::manual_seed(4);
    bytes = at::randn(shape).mul(20).to(at::kFloat8_e4m3fn);
    values = bytes.to(at::kDouble);
  }
};

void expect_equal(const at::Tensor& read, const at::Tensor& expected) {
  EXPECT_TRUE(at::equal(read, expected.to(at::kFloat).to(read.scalar_type())));
}

TEST_F(WeightReader, Float8WithOneScale) {
  const Float8 w({6, 10});
  for (const char* spelling : {"w_scale", "w_scale_inv"})
    for (const auto& shape : {std::vector<std::int64_t>{}, {1}, {1, 1}}) {
      const at::Tensor scale = at::full(shape, 0.375);
      const auto checkpoint =
          open({{"w", stored("F8_E4M3", w.bytes)}, {spelling, stored("F32", scale.to(at::kFloat))}});
      expect_equal(load(checkpoint, at::kBFloat16), w.values.mul(0.375));
    }
}

TEST_F(WeightReader, Float8WithAScaleForEachRow) {
  const Float8 w({6, 10});
  const at::Tensor scale = at::rand({6, 1}).add(0.1).to(at::kBFloat16);
  for (const at::Tensor& shaped : {scale, scale.flatten()}) {
    const auto checkpoint = open({{"w", stored("F8_E4M3", w.bytes)}, {"w_scale", stored("BF16", shaped)}});
    expect_equal(load(checkpoint, at::kFloat), w.values.mul(scale.to(at::kDouble)));
  }
}

TEST_F(WeightReader, Float8WithAScaleForEachBlock) {
  const Float8 w({2, 130, 300});  // of two experts; neither size is a multiple of 128
  const at::Tensor scale = at::rand({2, 2, 3}).add(0.1);
  const at::Tensor spread = scale.to(at::kDouble).repeat_interleave(128, 1).narrow(1, 0, 130).repeat_interleave(128, 2);
  const auto checkpoint = open({{"w", stored("F8_E4M3", w.bytes)}, {"w_scale_inv", stored("F32", scale)}});
  expect_equal(load(checkpoint, at::kFloat), w.values.mul(spread.narrow(2, 0, 300)));
  const at::Tensor fine = at::rand({2, 5, 5}).add(0.1);
  const at::Tensor by_32 = fine.to(at::kDouble).repeat_interleave(32, 1).narrow(1, 0, 130).repeat_interleave(64, 2);
  const auto other = open({{"w", stored("F8_E4M3", w.bytes)}, {"w_scale_inv", stored("F32", fine)}},
                          R"({"quantization_config": {"weight_block_size": [32, 64]}})");
  expect_equal(load(other, at::kFloat), w.values.mul(by_32.narrow(2, 0, 300)));
}

TEST_F(WeightReader, Float8WithAScaleForEachExpert) {
  const Float8 w({3, 4, 8});
  const at::Tensor scale = at::rand({3}).add(0.1);
  for (const auto& shape : {std::vector<std::int64_t>{3}, {3, 1}, {3, 1, 1}}) {
    const auto checkpoint = open({{"w", stored("F8_E4M3", w.bytes)}, {"w_scale", stored("F32", scale.reshape(shape))}});
    expect_equal(load(checkpoint, at::kFloat), w.values.mul(scale.to(at::kDouble).view({3, 1, 1})));
  }
}

TEST_F(WeightReader, Float8IsRefusedWithoutAScaleThatFits) {
  const Float8 w({6, 10});
  const StoredTensor bytes = stored("F8_E4M3", w.bytes);
  expect_refused({{"w", bytes}}, {"tensor \"w\"", "F8_E4M3", "no scale", "\"w_scale\"", "\"w_scale_inv\""});
  expect_refused({{"w", bytes}, {"w_scale", stored("F32", at::ones({5, 1}))}},
                 {"\"w_scale\"", "[5, 1]", "[6, 1]", "128 x 128", "[1, 1]"});
  expect_refused({{"w", bytes}, {"w_scale", stored("F32", at::full({1}, NAN))}}, {"\"w_scale\"", "NaN"});
  StoredTensor bad = bytes;
  bad.bytes[13] = '\x7f';
  expect_refused({{"w", bad}, {"w_scale", stored("F32", at::ones({1}))}}, {"tensor \"w\"", "NaN", "[1, 3]"});
}

TEST_F(WeightReader, ScalesOfActivationsAreIgnoredAndIntegersRefusedByName) {
  const Float8 w({6, 10});
  Tensors tensors = {{"l.weight", stored("F8_E4M3", w.bytes)},
                     {"l.weight_scale", stored("F32", at::full({}, 2.0F))},
                     {"l.input_scale", stored("F32", at::full({}, 3.0F))},
                     {"l.k_scale", stored("F32", at::full({}, 3.0F))}};
  expect_equal(load(open(tensors), at::kFloat, "l.weight"), w.values.mul(2.0));
  expect_refused({{"w", {"I8", {2}, "ab"}}}, {"tensor \"w\"", "dtype I8", "F32, BF16, F16 or F8_E4M3"});
  expect_refused({{"w", {"F64", {1}, std::string(8, '\0')}}}, {"tensor \"w\"", "dtype F64"});
}

}  // namespace
}  // namespace replayeval
