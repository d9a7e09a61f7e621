// The scalar rounding points against Eigen's own half and bfloat16, over every stored bit pattern and the ties between.
#include "kernels/storage_scalar.h"

#include <gtest/gtest.h>
#include <Eigen/Core>

#include <bit>
#include <cmath>
#include <limits>
#include <random>

namespace replayeval {
namespace {

std::uint16_t eigen_bits(float value, Dtype dtype) {
  return dtype == Dtype::float16 ? Eigen::numext::bit_cast<std::uint16_t>(Eigen::half(value))
                                 : Eigen::numext::bit_cast<std::uint16_t>(Eigen::bfloat16(value));
}

float eigen_value(std::uint16_t bits, Dtype dtype) {
  return dtype == Dtype::float16 ? static_cast<float>(Eigen::numext::bit_cast<Eigen::half>(bits))
                                 : static_cast<float>(Eigen::numext::bit_cast<Eigen::bfloat16>(bits));
}

void expect_same_encoding(float value, Dtype dtype) {
  const std::uint32_t ours = storage::encode(value, {dtype, Overflow::infinity});
  if (std::isnan(value)) {
    EXPECT_TRUE(std::isnan(storage::decode(ours, dtype)));
    return;
  }
  ASSERT_EQ(ours, eigen_bits(value, dtype)) << std::hexfloat << value << " as " << dtype_name(dtype);
}

class Storage16 : public ::testing::TestWithParam<Dtype> {};
INSTANTIATE_TEST_SUITE_P(Types, Storage16, ::testing::Values(Dtype::bfloat16, Dtype::float16),
                         [](const auto& type) { return std::string(dtype_name(type.param)); });

TEST_P(Storage16, EveryPatternDecodesAndEncodesBack) {
  for (std::uint32_t bits = 0; bits <= 0xFFFF; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    const float value = storage::decode(half, GetParam());
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(eigen_value(half, GetParam())));
      EXPECT_TRUE(std::isnan(storage::rounded(value, {GetParam(), Overflow::saturate})));
      continue;
    }
    ASSERT_EQ(std::bit_cast<std::uint32_t>(value), std::bit_cast<std::uint32_t>(eigen_value(half, GetParam()))) << bits;
    ASSERT_EQ(storage::encode(value, {GetParam(), Overflow::infinity}), bits);
  }
}

TEST_P(Storage16, TiesGoToEven) {
  for (std::uint32_t bits = 0; bits < 0x7F80; ++bits) {
    const float low = storage::decode(static_cast<std::uint16_t>(bits), GetParam());
    const float high = storage::decode(static_cast<std::uint16_t>(bits + 1), GetParam());
    if (!std::isfinite(low) || !std::isfinite(high)) continue;
    const float tie = static_cast<float>((static_cast<double>(low) + high) / 2);
    for (const float value : {tie, std::nextafter(tie, 0.0F), std::nextafter(tie, high), -tie}) {
      expect_same_encoding(value, GetParam());
    }
  }
}

TEST_P(Storage16, RandomBitPatterns) {
  std::mt19937 random(1);
  for (int i = 0; i < 1 << 20; ++i)
    expect_same_encoding(std::bit_cast<float>(static_cast<std::uint32_t>(random())), GetParam());
}

TEST_P(Storage16, OverflowBecomesInfinityOrTheLargestValue) {
  const float most = storage::max_finite(GetParam());
  const float infinity = std::numeric_limits<float>::infinity();
  const Storage open{GetParam(), Overflow::infinity};
  const Storage closed{GetParam(), Overflow::saturate};
  EXPECT_EQ(storage::rounded(most, open), most);
  EXPECT_EQ(storage::rounded(std::numeric_limits<float>::max(), open), infinity);
  EXPECT_EQ(storage::rounded(-std::numeric_limits<float>::max(), open), -infinity);
  EXPECT_EQ(storage::rounded(std::numeric_limits<float>::max(), closed), most);
  EXPECT_EQ(storage::rounded(-infinity, closed), -most);
  EXPECT_TRUE(std::isnan(storage::rounded(std::numeric_limits<float>::quiet_NaN(), closed)));
}

TEST(StorageNames, ParseBack) {
  for (const Dtype dtype : {Dtype::float32, Dtype::bfloat16, Dtype::float16}) {
    EXPECT_EQ(parse_dtype(dtype_name(dtype)), dtype);
  }
  for (const Overflow overflow : {Overflow::infinity, Overflow::saturate}) {
    EXPECT_EQ(parse_overflow(overflow_name(overflow)), overflow);
  }
  EXPECT_EQ(parse_dtype("fp16"), std::nullopt);
  EXPECT_EQ(parse_dtype(""), std::nullopt);
  EXPECT_EQ(parse_overflow("wrap"), std::nullopt);
  EXPECT_EQ(dtype_size(Dtype::float32), 4U);
  EXPECT_EQ(dtype_size(Dtype::bfloat16), 2U);
}

}  // namespace
}  // namespace replayeval
