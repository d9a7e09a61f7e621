// The rounding points inside the kernels, bit by bit, and what they count. With beta = 1, k a unit vector and a state
// of zero the new state's first column is v itself, so any float32 can be sent through a store.
#include "kernels/storage_scalar.h"
#include "tests/kernels/delta_rule_arms.h"

#include <bit>
#include <cmath>
#include <limits>
#include <random>

namespace replayeval::testing {
namespace {

using delta_rule::RingForm;

constexpr delta_rule::Shape kShape{2, 8, 8, 256};
constexpr std::int64_t kHeldTokens = 2;
constexpr float kUnitKey = 4096.0F;  // a power of two, beside whose square 1e-6 vanishes: normalised to 1 exactly

// v: [kHeldTokens, num_value_heads, value_dim]
DeltaProblem problem_of(delta_rule::Family family, const std::vector<float>& v) {
  DeltaProblem p = random_delta_problem(family, kShape, 1, kHeldTokens, Dtype::float32, 2);
  p.gate = delta_rule::Gate::softplus;
  p.v = v;
  p.k.assign(p.k.size(), 0.0F);
  for (std::size_t i = 0; i < p.k.size(); i += static_cast<std::size_t>(kShape.key_dim)) p.k[i] = kUnitKey;
  p.b.assign(p.b.size(), 100.0F);          // sigmoid is 1
  p.A_log.assign(p.A_log.size(), -80.0F);  // decays by nothing
  return p;
}

// Values of every magnitude, ties and special values of both 16-bit types among them; the second token is zeros.
std::vector<float> awkward_values(unsigned seed) {
  std::mt19937 random(seed);
  const auto count = static_cast<std::size_t>(kShape.num_value_heads * kShape.value_dim);
  const float infinity = std::numeric_limits<float>::infinity();
  std::vector<float> values = {0.0F,     -0.0F,        65504.0F,  65519.9F,  65520.0F,         -65520.0F,
                               70000.0F, 1e30F,        -1e30F,    3.39e38F,  3.4e38F,          -3.4e38F,
                               infinity, -infinity,    0x1p-24F,  0x1p-25F,  0x1p-26F,         0x1.8p-25F,
                               0x1p-14F, 0x1.FFCp-15F, 0x1p-126F, 0x1p-127F, 0x1.FFFFFEp+127F, std::nanf("")};
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

// What arithmetic makes of v in column c of a state of zero.
float sent(float v, std::size_t column) { return std::fma(1.0F * (v - 0.0F), column == 0 ? 1.0F : 0.0F, 0.0F); }

void expect_same(float stored, float expected) {
  if (std::isnan(expected)) {
    ASSERT_TRUE(std::isnan(stored));
  } else {
    ASSERT_EQ(std::bit_cast<std::uint32_t>(stored), std::bit_cast<std::uint32_t>(expected))
        << std::hexfloat << "stored " << stored << " expected " << expected;
  }
}

class DeltaRuleStorage : public DeltaOnDevice {};
REPLAYEVAL_DELTA_ON_EACH_DEVICE(DeltaRuleStorage);

TEST_P(DeltaRuleStorage, EveryStoreRoundsAndCountsAsTheScalarDefinition) {
  const auto K = static_cast<std::size_t>(kShape.key_dim);
  for (unsigned seed = 0; seed < (full_sweep() ? 200U : 8U); ++seed) {
    const std::vector<float> v = awkward_values(seed);
    const DeltaProblem problem = problem_of(family(), v);
    for (const Dtype dtype : {Dtype::float32, Dtype::bfloat16, Dtype::float16}) {
      for (const Overflow overflow : {Overflow::infinity, Overflow::saturate}) {
        const Storage storage{dtype, overflow};
        StorageCounts expected;
        for (std::size_t i = 0; i < v.size() / kHeldTokens; ++i) {
          for (std::size_t c = 0; c < K; ++c) storage::count(sent(v[i], c), storage, expected);
        }
        EXPECT_GT(expected.non_finite, 0U);
        EXPECT_GT(expected.subnormal, 0U);
        const delta_rule::ReplayForm deltas{1, RingForm::deltas, Route::output_only, Flush::summed, Dtype::float32};
        const delta_rule::ReplayForm inputs{1, RingForm::inputs, Route::output_only, Flush::sequential, Dtype::float32};
        for (const DeltaArm& arm : {DeltaArm{false, {}, storage}, {true, deltas, storage}, {true, inputs, storage}}) {
          SCOPED_TRACE(arm_name(arm));
          DeltaDecoder decoder(device(), problem, arm, 1);
          decoder.feed({{0, 0, 0}}, 1);
          const std::vector<float> stored = decoder.state(0);
          for (std::size_t i = 0; i < stored.size(); ++i) {
            expect_same(stored[i], storage::rounded(sent(v[i / K], i % K), storage));
          }
          EXPECT_EQ(decoder.counts().saturated, expected.saturated);
          EXPECT_EQ(decoder.counts().subnormal, expected.subnormal);
          EXPECT_EQ(decoder.counts().non_finite, expected.non_finite);
        }
      }
    }
  }
}

// v of an inputs ring and d of a deltas ring (here v itself, but for the sign of zero), stepwise and at the end of a
// longer block.
TEST_P(DeltaRuleStorage, TheRingRoundsAsTheScalarDefinition) {
  const std::vector<float> v = awkward_values(99);
  const DeltaProblem problem = problem_of(family(), v);
  const auto V = static_cast<std::size_t>(kShape.value_dim);
  for (const Dtype dtype : {Dtype::float32, Dtype::bfloat16}) {
    for (const auto ring_form : {RingForm::deltas, RingForm::inputs}) {
      for (const std::int64_t tokens : {1, 2}) {
        const DeltaArm arm{true, {8, ring_form, Route::output_only, Flush::summed, dtype}, {}};
        SCOPED_TRACE(arm_name(arm));
        DeltaDecoder decoder(device(), problem, arm, 1);
        decoder.feed({{0, 0, 0}}, tokens);
        const std::vector<float> ring = decode_all(decoder.slot_bits(0).values, dtype);
        ASSERT_EQ(ring.size(), static_cast<std::size_t>(kShape.num_value_heads * tokens) * V);
        for (std::size_t i = 0; i < v.size() / kHeldTokens; ++i) {
          const float stored = ring[i / V * static_cast<std::size_t>(tokens) * V + i % V];
          expect_same(stored, storage::rounded(v[i], {dtype, Overflow::infinity}));
        }
      }
    }
  }
}

// The key that an entry keeps: normalised, then rounded once.
TEST_P(DeltaRuleStorage, TheRingKeepsNormalisedKeys) {
  const DeltaProblem problem = random_delta_problem(family(), {2, 4, 40, 24}, 1, 3, Dtype::float32, 8);
  const auto keys = [&](Dtype dtype) {
    DeltaDecoder decoder(device(), problem, {true, {8, RingForm::deltas, Route::output_only, Flush::summed, dtype}, {}},
                         1);
    decoder.feed({{0, 0, 0}}, 3);
    return decode_all(decoder.slot_bits(0).k, dtype);
  };
  const std::vector<float> exact = keys(Dtype::float32);
  const std::vector<float> rounded = keys(Dtype::bfloat16);
  ASSERT_EQ(exact.size(), std::size_t{2 * 3 * 40});
  for (std::size_t i = 0; i < exact.size(); ++i) {
    expect_same(rounded[i], storage::rounded(exact[i], {Dtype::bfloat16, Overflow::infinity}));
  }
  double square = 0.0;
  for (std::size_t c = 0; c < 40; ++c) square += static_cast<double>(exact[c]) * static_cast<double>(exact[c]);
  EXPECT_NEAR(square, 1.0, 1e-6);
}

// A reflection (beta = 2) carries the state from 40000 to 2 * 60000 - 40000, past float16: infinite, or held at 65504.
TEST_P(DeltaRuleStorage, AGrowingStateOverflowsAsItsStorageSays) {
  const auto held = static_cast<std::size_t>(kShape.num_value_heads * kShape.value_dim);
  std::vector<float> v(2 * held, 20000.0F);
  std::fill(v.begin() + static_cast<std::ptrdiff_t>(held), v.end(), 60000.0F);
  DeltaProblem problem = problem_of(family(), v);
  problem.allow_neg_eigval = true;
  for (const Overflow overflow : {Overflow::infinity, Overflow::saturate}) {
    DeltaDecoder decoder(device(), problem, {false, {}, {Dtype::float16, overflow}}, 1);
    decoder.feed({{0, 0, 0}}, 1);
    EXPECT_EQ(decoder.counts().saturated, 0U);
    EXPECT_EQ(decoder.state(0)[0], 40000.0F);
    decoder.feed({{0, 0, 1}}, 1);
    EXPECT_EQ(decoder.counts().saturated, held);
    EXPECT_EQ(decoder.counts().non_finite, 0U);
    const float expected = overflow == Overflow::saturate ? 65504.0F : std::numeric_limits<float>::infinity();
    const std::vector<float> state = decoder.state(0);
    for (std::size_t i = 0; i < state.size(); ++i) ASSERT_EQ(state[i], i % 8 == 0 ? expected : 0.0F);
    decoder.feed({{0, 0, 1}}, 1);
    EXPECT_EQ(decoder.counts().saturated, held);
    EXPECT_EQ(decoder.counts().non_finite > 0, overflow == Overflow::infinity);
  }
}

// NaN in one head's inputs stays in that head and in that sequence.
TEST_P(DeltaRuleStorage, NaNStaysWhereItCameIn) {
  DeltaProblem problem = random_delta_problem(family(), {2, 4, 24, 16}, 2, 12, Dtype::float32, 3);
  const auto gates = static_cast<std::size_t>(problem.gates());
  problem.f[(3 * 4 + 2) * gates + gates / 2] = std::nanf("");  // sequence 0, token 3, head 2
  for (const DeltaArm& arm : every_delta_arm(4)) {
    SCOPED_TRACE(arm_name(arm));
    DeltaDecoder decoder(device(), problem, arm, 2);
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
