// The rounding points inside the kernels, bit by bit, and what they count. With dt = 1, x = 1 and a state of zero the
// new state is B itself, so any float32 can be sent through a store.
#include "kernels/storage_scalar.h"
#include "tests/kernels/mamba2_arms.h"
#include "tests/kernels/on_device.h"

#include <bit>
#include <cmath>
#include <limits>
#include <random>

namespace replayeval::testing {
namespace {

constexpr mamba2::Shape kShape{16, 16, 8, 256};
constexpr std::int64_t kHeldTokens = 2;

Mamba2Problem problem_of(const std::vector<float>& B) {
  Mamba2Problem p;
  p.shape = kShape;
  p.sequences = 1;
  p.tokens = kHeldTokens;
  p.dt_min = p.dt_max = 1.0F;
  p.B = B;
  const auto heads = static_cast<std::size_t>(kShape.num_heads);
  p.x.assign(static_cast<std::size_t>(kHeldTokens * kShape.num_heads * kShape.head_dim), 1.0F);
  p.C.assign(B.size(), 0.0F);
  p.dt.assign(static_cast<std::size_t>(kHeldTokens) * heads, 0.0F);
  p.A_log.assign(heads, 0.0F);
  p.D.assign(heads, 0.0F);
  p.dt_bias.assign(heads, 0.0F);
  return p;
}

// Values of every magnitude, ties and special values of both 16-bit types among them; the second token is zeros.
std::vector<float> awkward_values(unsigned seed) {
  std::mt19937 random(seed);
  std::vector<float> values;
  const std::size_t count = static_cast<std::size_t>(kShape.num_groups * kShape.state_size);
  const float infinity = std::numeric_limits<float>::infinity();
  values = {0.0F,     -0.0F,      65504.0F, 65519.9F,     65520.0F,  -65520.0F, 70000.0F,         1e30F,
            -1e30F,   3.39e38F,   3.4e38F,  -3.4e38F,     infinity,  -infinity, 0x1p-24F,         0x1p-25F,
            0x1p-26F, 0x1.8p-25F, 0x1p-14F, 0x1.FFCp-15F, 0x1p-126F, 0x1p-127F, 0x1.FFFFFEp+127F, std::nanf("")};
  while (values.size() < count) {
    const auto bits = static_cast<std::uint32_t>(random());
    float value = std::bit_cast<float>(bits);
    if (values.size() % 2 == 0) {  // every other one in float16's range, near its ties
      value = storage::decode_float16(static_cast<std::uint16_t>(bits & 0xFBFFU));
      const auto mantissa_tail = static_cast<std::uint32_t>(random() % 3) + 0xFFFU;
      value = std::bit_cast<float>(std::bit_cast<std::uint32_t>(value) | mantissa_tail);
    }
    values.push_back(value);
  }
  values.resize(count * kHeldTokens, 0.0F);
  return values;
}

// fma(1, B, a * 0) for B itself: adding zero turns -0 into +0 and nothing else.
float through_fma(float value) { return value + 0.0F; }

void expect_stored(const std::vector<float>& stored, const std::vector<float>& B, Storage as) {
  const auto N = static_cast<std::size_t>(kShape.state_size);
  const auto P = static_cast<std::size_t>(kShape.head_dim);
  for (std::size_t i = 0; i < stored.size(); ++i) {
    const float sent = through_fma(B[i / (N * P) * N + i % N]);
    const float expected = storage::rounded(sent, as);
    if (std::isnan(expected)) {
      ASSERT_TRUE(std::isnan(stored[i])) << i;
    } else {
      ASSERT_EQ(std::bit_cast<std::uint32_t>(stored[i]), std::bit_cast<std::uint32_t>(expected))
          << std::hexfloat << "sent " << sent << " stored " << stored[i] << " expected " << expected;
    }
  }
}

class Mamba2Storage : public OnDevice {};
REPLAYEVAL_ON_EACH_DEVICE(Mamba2Storage);

TEST_P(Mamba2Storage, EveryStoreRoundsAndCountsAsTheScalarDefinition) {
  for (unsigned seed = 0; seed < (full_sweep() ? 200U : 8U); ++seed) {
    const std::vector<float> B = awkward_values(seed);
    const Mamba2Problem problem = problem_of(B);
    for (const Dtype dtype : {Dtype::float32, Dtype::bfloat16, Dtype::float16}) {
      for (const Overflow overflow : {Overflow::infinity, Overflow::saturate}) {
        const Storage storage{dtype, overflow};
        StorageCounts expected;
        for (std::int64_t i = 0; i < kShape.num_groups * kShape.state_size; ++i) {
          for (std::int64_t p = 0; p < kShape.head_dim; ++p) {
            storage::count(through_fma(B[static_cast<std::size_t>(i)]), storage, expected);
          }
        }
        const mamba2::ReplayForm at_once{1, mamba2::Route::output_only, mamba2::Flush::summed, Dtype::float32};
        for (const Mamba2Arm& arm : {Mamba2Arm{false, {}, storage}, Mamba2Arm{true, at_once, storage}}) {
          SCOPED_TRACE(arm_name(arm));
          Mamba2Decoder decoder(GetParam(), problem, arm, 1);
          decoder.feed({{0, 0, 0}}, 1);
          expect_stored(decoder.state(0), B, storage);
          EXPECT_EQ(decoder.counts().saturated, expected.saturated);
          EXPECT_EQ(decoder.counts().subnormal, expected.subnormal);
          EXPECT_EQ(decoder.counts().non_finite, expected.non_finite);
          EXPECT_GT(expected.non_finite, 0U);
          EXPECT_GT(expected.subnormal, 0U);
        }
      }
    }
  }
}

TEST_P(Mamba2Storage, TheRingRoundsAsTheScalarDefinition) {
  const std::vector<float> B = awkward_values(99);
  const Mamba2Problem problem = problem_of(B);
  for (const Dtype dtype : {Dtype::float32, Dtype::bfloat16}) {
    for (const std::int64_t tokens : {1, 2}) {  // stepwise, and the end of a longer block
      const Mamba2Arm arm{true, {8, mamba2::Route::output_only, mamba2::Flush::summed, dtype}, {}};
      Mamba2Decoder decoder(GetParam(), problem, arm, 1);
      decoder.feed({{0, 0, 0}}, tokens);
      const std::vector<float> ring = decode_all(decoder.slot_bits(0).ring_B, dtype);
      const auto N = static_cast<std::size_t>(kShape.state_size);
      ASSERT_EQ(ring.size(), static_cast<std::size_t>(kShape.num_groups * tokens) * N);
      for (std::size_t group = 0; group < static_cast<std::size_t>(kShape.num_groups); ++group) {
        for (std::size_t n = 0; n < N; ++n) {
          const float expected = storage::rounded(B[group * N + n], {dtype, Overflow::infinity});
          const float stored = ring[group * static_cast<std::size_t>(tokens) * N + n];
          if (std::isnan(expected)) {
            ASSERT_TRUE(std::isnan(stored));
          } else {
            ASSERT_EQ(std::bit_cast<std::uint32_t>(stored), std::bit_cast<std::uint32_t>(expected));
          }
        }
      }
    }
  }
}

// A state that grows past float16: infinite from then on, or held at 65504, counted at every store.
TEST_P(Mamba2Storage, AGrowingStateOverflowsAsItsStorageSays) {
  Mamba2Problem problem = problem_of(std::vector<float>(static_cast<std::size_t>(kHeldTokens * 16 * 256), 40000.0F));
  problem.A_log.assign(problem.A_log.size(), -30.0F);  // decays by nothing
  const std::uint64_t elements = static_cast<std::uint64_t>(kShape.num_heads * kShape.head_dim * kShape.state_size);
  for (const Overflow overflow : {Overflow::infinity, Overflow::saturate}) {
    Mamba2Decoder decoder(GetParam(), problem, {false, {}, {Dtype::float16, overflow}}, 1);
    decoder.feed({{0, 0, 0}}, 1);
    EXPECT_EQ(decoder.counts().saturated, 0U);
    EXPECT_EQ(decoder.state(0)[5], 40000.0F);
    decoder.feed({{0, 0, 1}}, 1);
    EXPECT_EQ(decoder.counts().saturated, elements);
    EXPECT_EQ(decoder.counts().non_finite, 0U);
    const float expected = overflow == Overflow::saturate ? 65504.0F : std::numeric_limits<float>::infinity();
    for (const float value : decoder.state(0)) ASSERT_EQ(value, expected);
    decoder.feed({{0, 0, 1}}, 1);
    EXPECT_EQ(decoder.counts().saturated, overflow == Overflow::saturate ? 2 * elements : elements);
    EXPECT_EQ(decoder.counts().non_finite, overflow == Overflow::saturate ? 0 : elements);
  }
}

// NaN in one head's inputs stays in that head and in that sequence.
TEST_P(Mamba2Storage, NaNStaysWhereItCameIn) {
  Mamba2Problem problem = random_problem({4, 2, 16, 24}, 2, 12, Dtype::float32, 3);
  problem.dt[static_cast<std::size_t>(3 * 4 + 2)] = std::nanf("");  // sequence 0, token 3, head 2
  for (const Mamba2Arm& arm : every_arm(4)) {
    SCOPED_TRACE(arm_name(arm));
    Mamba2Decoder decoder(GetParam(), problem, arm, 2);
    const std::vector<float> y = decode_all(decoder.feed({{0, 0, 0}, {1, 1, 0}}, 12), Dtype::float32);
    for (std::size_t i = 0; i < y.size(); ++i) {
      const std::size_t row = i / (12 * 64);
      const std::size_t token = i / 64 % 12;
      const std::size_t head = i % 64 / 16;
      ASSERT_EQ(std::isnan(y[i]), row == 0 && token >= 3 && head == 2)
          << "row " << row << " token " << token << " head " << head;
    }
  }
}

}  // namespace
}  // namespace replayeval::testing
