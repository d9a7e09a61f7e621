// What must agree to the last bit: the two modes, the anchors, A/A, and every arrangement of rows and slots.
#include "tests/kernels/mamba2_arms.h"
#include "tests/kernels/on_device.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <random>
#include <tuple>

namespace replayeval::testing {
namespace {

constexpr mamba2::Shape kOdd{6, 2, 24, 40};     // odd multiples of 8, three heads a group
constexpr mamba2::Shape kTuned{2, 1, 64, 128};  // the tuned size
constexpr mamba2::Shape kWide{2, 2, 8, 200};    // beyond 128 columns

class Mamba2Bits : public OnDevice {};
REPLAYEVAL_ON_EACH_DEVICE(Mamba2Bits);

// y bits of `tokens` tokens of one sequence, fed to `slot` in calls of `cuts` tokens.
Bytes feed_in_cuts(const Mamba2Problem& problem, Mamba2Decoder& decoder, FeedRow row,
                   const std::vector<std::int64_t>& cuts) {
  Bytes y;
  for (const std::int64_t tokens : cuts) {
    const Bytes part = decoder.feed({row}, tokens);
    y.insert(y.end(), part.begin(), part.end());
    row.start += tokens;
  }
  EXPECT_LE(row.start, problem.tokens);
  return y;
}

void expect_modes_agree(DeviceKind kind, const Mamba2Problem& problem, const Mamba2Arm& arm) {
  SCOPED_TRACE(arm_name(arm));
  const std::int64_t T = problem.tokens;
  Mamba2Decoder stepwise(kind, problem, arm, 1);
  const Bytes expected =
      feed_in_cuts(problem, stepwise, {0, 0, 0}, std::vector<std::int64_t>(static_cast<std::size_t>(T), 1));
  for (const std::vector<std::int64_t>& cuts :
       {std::vector<std::int64_t>{T}, {1, T - 1}, {3, 1, 7, T - 11}, {T - 2, 2}}) {
    Mamba2Decoder blocks(kind, problem, arm, 1);
    EXPECT_EQ(feed_in_cuts(problem, blocks, {0, 0, 0}, cuts), expected) << "y, first cut " << cuts[0];
    EXPECT_EQ(blocks.slot_bits(0), stepwise.slot_bits(0)) << "caches, first cut " << cuts[0];
    EXPECT_EQ(blocks.counts().saturated, stepwise.counts().saturated);
    EXPECT_EQ(blocks.counts().subnormal, stepwise.counts().subnormal);
    EXPECT_EQ(blocks.counts().non_finite, stepwise.counts().non_finite);
  }
}

TEST_P(Mamba2Bits, TeacherForcedEqualsStepwiseForEveryArm) {
  const std::vector<std::int64_t> lengths =
      full_sweep() ? std::vector<std::int64_t>{1, 2, 3, 4, 5, 7, 8, 15, 16, 17, 31, 32, 33, 63, 64}
                   : std::vector<std::int64_t>{1, 2, 5, 16};
  const Mamba2Problem odd = random_problem(kOdd, 1, 37, Dtype::float32, 1);  // which a bfloat16 ring rounds
  for (const std::int64_t L : lengths) {
    for (const Mamba2Arm& arm : every_arm(L)) expect_modes_agree(GetParam(), odd, arm);
  }
}

TEST_P(Mamba2Bits, TeacherForcedEqualsStepwiseAtOtherShapesAndTypes) {
  for (const mamba2::Shape& shape : {kTuned, kWide}) {
    for (const Dtype dtype : {Dtype::float32, Dtype::float16}) {
      Mamba2Problem problem = random_problem(shape, 1, 70, dtype, 2);
      problem.y_dtype = dtype;
      expect_modes_agree(GetParam(), problem, {false, {}, {Dtype::bfloat16, Overflow::saturate}});
      for (const std::int64_t L : {16, 64}) {
        const std::vector<Mamba2Arm> arms = replay_arms(L);
        for (std::size_t i = 0; i < arms.size(); i += full_sweep() ? 1 : 5)
          expect_modes_agree(GetParam(), problem, arms[i]);
      }
    }
  }
}

// Rows of one call at different ring positions, some of them padded, against each sequence alone.
TEST_P(Mamba2Bits, RowsAtMixedRingPositionsAreIndependent) {
  const Mamba2Problem problem = random_problem(kOdd, 5, 40, Dtype::float32, 3);
  for (const Mamba2Arm& arm : every_arm(6)) {
    SCOPED_TRACE(arm_name(arm));
    Mamba2Decoder together(GetParam(), problem, arm, 9);
    const std::vector<std::int32_t> slot = {7, 0, 8, 3, 4};
    const std::vector<std::int64_t> lead = {0, 1, 5, 11, 3};  // tokens a sequence is ahead when they meet
    for (std::int64_t s = 0; s < 5; ++s) {
      if (lead[s] > 0) together.feed({{slot[s], s, 0}}, lead[s]);
    }
    std::vector<FeedRow> rows;
    for (const std::int64_t s : {3, 1, 4, 0, 2}) rows.push_back({slot[s], s, lead[s]});
    rows.insert(rows.begin() + 2, FeedRow{-1, 0, 0});
    const Bytes y = together.feed(rows, 13);

    for (std::size_t r = 0; r < rows.size(); ++r) {
      if (rows[r].slot < 0) {
        const std::vector<float> padded =
            decode_all(token_bits(problem, y, 13, static_cast<std::int64_t>(r), 12), problem.y_dtype);
        EXPECT_TRUE(std::all_of(padded.begin(), padded.end(), [](float v) { return v == 0.0F; })) << "a padded row's y";
        continue;
      }
      Mamba2Decoder alone(GetParam(), problem, arm, 1);
      const FeedRow row{0, rows[r].sequence, 0};
      if (rows[r].start > 0) alone.feed({row}, rows[r].start);
      const Bytes expected = alone.feed({{0, row.sequence, rows[r].start}}, 13);
      for (std::int64_t t = 0; t < 13; ++t) {
        EXPECT_EQ(token_bits(problem, y, 13, static_cast<std::int64_t>(r), t), token_bits(problem, expected, 13, 0, t))
            << "row " << r << " token " << t;
      }
      EXPECT_EQ(together.slot_bits(rows[r].slot), alone.slot_bits(0)) << "row " << r;
    }
  }
}

// The same sequences in batches of different sizes and orders, stepwise, with and without a slot map.
TEST_P(Mamba2Bits, BatchSizeRowOrderAndSlotMapChangeNothing) {
  const std::int64_t sequences = 33;
  const Mamba2Problem problem = random_problem({2, 1, 16, 24}, sequences, 6, Dtype::float32, 4);
  for (const Mamba2Arm& arm : every_arm(4)) {
    SCOPED_TRACE(arm_name(arm));
    Mamba2Decoder in_order(GetParam(), problem, arm, sequences);
    Mamba2Decoder shuffled(GetParam(), problem, arm, 2 * sequences);
    std::vector<std::int64_t> order(static_cast<std::size_t>(sequences));
    std::iota(order.begin(), order.end(), 0);
    std::mt19937 random(5);
    for (std::int64_t t = 0; t < problem.tokens; ++t) {
      std::vector<FeedRow> rows;
      for (std::int64_t s = 0; s < sequences; ++s) rows.push_back({static_cast<std::int32_t>(s), s, t});
      const Bytes expected = in_order.feed(rows, 1, true);
      std::shuffle(order.begin(), order.end(), random);
      for (std::size_t first = 0; first < order.size(); first += 7) {
        std::vector<FeedRow> part;
        for (std::size_t i = first; i < std::min(first + 7, order.size()); ++i) {
          part.push_back({static_cast<std::int32_t>(2 * order[i] + 1), order[i], t});
        }
        const Bytes y = shuffled.feed(part, 1);
        for (std::size_t i = 0; i < part.size(); ++i) {
          ASSERT_EQ(token_bits(problem, y, 1, static_cast<std::int64_t>(i), 0),
                    token_bits(problem, expected, 1, part[i].sequence, 0));
        }
      }
    }
    for (std::int64_t s = 0; s < sequences; ++s) ASSERT_EQ(in_order.slot_bits(s), shuffled.slot_bits(2 * s + 1));
  }
}

// Batches large enough for a GPU to give a block several heads, rows at all ring positions, against sequences alone.
TEST_P(Mamba2Bits, LargeBatchesEqualSmallOnes) {
  const std::int64_t sequences = 66;
  int turn = 0;
  for (const mamba2::Shape& shape :
       std::vector<mamba2::Shape>{{64, 4, 16, 24}, {64, 8, 8, 64}, {64, 2, 24, 128}, {64, 4, 8, 200}}) {
    const Mamba2Problem problem = random_problem(shape, sequences, 12, Dtype::bfloat16, 12);
    for (const Dtype state : {Dtype::float32, Dtype::bfloat16, Dtype::float16}) {
      for (const Dtype ring : {Dtype::float32, Dtype::bfloat16}) {
        if (!full_sweep() && (++turn % 4) != 0) continue;
        const Mamba2Arm arm{
            true, {5, mamba2::Route::output_only, mamba2::Flush::summed, ring}, {state, Overflow::infinity}};
        SCOPED_TRACE(arm_name(arm));
        Mamba2Decoder together(GetParam(), problem, arm, sequences);
        const auto lead = [](std::int64_t sequence) { return sequence % 5; };
        for (std::int64_t ahead = 1; ahead < 5; ++ahead) {
          std::vector<FeedRow> rows;
          for (std::int64_t s = ahead; s < sequences; s += 5) rows.push_back({static_cast<std::int32_t>(s), s, 0});
          together.feed(rows, ahead);
        }
        std::vector<Bytes> y;
        for (std::int64_t t = 0; t < 7; ++t) {
          std::vector<FeedRow> rows;
          for (std::int64_t s = 0; s < sequences; ++s) rows.push_back({static_cast<std::int32_t>(s), s, lead(s) + t});
          y.push_back(together.feed(rows, 1));
        }
        for (const std::int64_t s : {0, 1, 33, 64, 65}) {
          Mamba2Decoder alone(GetParam(), problem, arm, 1);
          if (lead(s) > 0) alone.feed({{0, s, 0}}, lead(s));
          for (std::int64_t t = 0; t < 7; ++t) {
            ASSERT_EQ(alone.feed({{0, s, lead(s) + t}}, 1),
                      token_bits(problem, y[static_cast<std::size_t>(t)], 1, s, 0))
                << "sequence " << s << " token " << t;
          }
          ASSERT_EQ(alone.slot_bits(0), together.slot_bits(s)) << "sequence " << s;
        }
      }
    }
  }
}

// Three steps of all sequences at different ring positions, a padded row among them: in three calls, against calls of
// three tokens for `few` rows.
void expect_steps_equal_blocks(DeviceKind kind, const Mamba2Problem& problem, const Mamba2Arm& arm, std::size_t few) {
  const std::int64_t sequences = problem.sequences;
  const std::int64_t leads = std::min<std::int64_t>(arm.replay ? arm.form.buffer_len : 1, 6);
  Mamba2Decoder large(kind, problem, arm, sequences + 3);
  Mamba2Decoder small(kind, problem, arm, sequences + 3);
  const auto slot = [&](std::int64_t s) { return static_cast<std::int32_t>((s + 3) % (sequences + 3)); };
  const std::vector<float> infinite(
      static_cast<std::size_t>(problem.shape.num_heads * problem.shape.head_dim * problem.shape.state_size),
      __builtin_inff());
  for (Mamba2Decoder* decoder : {&large, &small}) {
    decoder->set_state(slot(1), infinite);
    for (std::int64_t lead = 1; lead < leads; ++lead) {
      std::vector<FeedRow> rows;
      for (std::int64_t s = lead; s < sequences; s += leads) rows.push_back({slot(s), s, 0});
      if (!rows.empty()) decoder->feed(rows, lead);
    }
  }
  const auto rows_at = [&](std::int64_t t) {
    std::vector<FeedRow> rows;
    for (std::int64_t s = 0; s < sequences; ++s) rows.push_back({slot(s), s, s % leads + t});
    rows.insert(rows.begin() + static_cast<std::ptrdiff_t>(rows.size() / 2), FeedRow{-1, 0, 0});
    return rows;
  };
  const std::vector<Bytes> steps = {large.feed(rows_at(0), 1), large.feed(rows_at(1), 1), large.feed(rows_at(2), 1)};
  const std::vector<FeedRow> rows = rows_at(0);
  for (std::size_t first = 0; first < rows.size(); first += few) {
    const std::vector<FeedRow> part(rows.begin() + static_cast<std::ptrdiff_t>(first),
                                    rows.begin() + static_cast<std::ptrdiff_t>(std::min(first + few, rows.size())));
    const Bytes y = small.feed(part, 3);
    for (std::size_t i = 0; i < part.size(); ++i) {
      for (std::int64_t t = 0; t < 3; ++t) {
        ASSERT_EQ(token_bits(problem, steps[static_cast<std::size_t>(t)], 1, static_cast<std::int64_t>(first + i), 0),
                  token_bits(problem, y, 3, static_cast<std::int64_t>(i), t))
            << "row " << first + i << " step " << t;
      }
    }
  }
  for (std::int64_t s = 0; s < sequences; ++s) {
    ASSERT_EQ(large.slot_bits(slot(s)), small.slot_bits(slot(s))) << "sequence " << s;
  }
  EXPECT_EQ(large.counts().non_finite, small.counts().non_finite);
  EXPECT_EQ(large.counts().subnormal, small.counts().subnormal);
  if (leads == 1) {
    EXPECT_GT(large.counts().non_finite, 0U);
  }
}

// Batches that stream through a GPU's multiprocessors, at all ring positions and with padded rows, against small
// batches.
TEST_P(Mamba2Bits, StreamedStepsEqualBlocks) {
  if (GetParam() == DeviceKind::cpu) GTEST_SKIP() << "the CPU has one way for all batches";
  int turn = 0;
  for (const auto& [shape, most, dtype] :
       std::vector<std::tuple<mamba2::Shape, std::int64_t, Dtype>>{{{16, 2, 64, 128}, 257, Dtype::bfloat16},
                                                                   {{8, 2, 128, 128}, 135, Dtype::float32},
                                                                   {{8, 1, 64, 128}, 135, Dtype::float16}}) {
    Mamba2Problem problem = random_problem(shape, most, 9, dtype, 13);
    problem.stride_pad = dtype == Dtype::bfloat16 ? kStridePad : 4;  // rows that can be read four elements at a time
    for (const std::int64_t L : {1, 4, 16, 7, 32, 64}) {
      for (const Mamba2Arm& arm : every_arm(L)) {
        const bool streams =
            !arm.replay || (arm.form.route == mamba2::Route::output_only && arm.form.flush == mamba2::Flush::summed);
        if (!streams || (!full_sweep() && turn++ % 5 != 0)) continue;
        SCOPED_TRACE(arm_name(arm) + " head_dim " + std::to_string(shape.head_dim));
        expect_steps_equal_blocks(GetParam(), problem, arm, 16);
      }
    }
  }
}

// A step as engines take it: the case that has kernels of its own.
bool is_published(const Mamba2Arm& arm) {
  return arm.replay && arm.form.route == mamba2::Route::output_only && arm.form.flush == mamba2::Flush::summed &&
         arm.form.ring_dtype == Dtype::bfloat16;
}

// Batches too small for that, at every length of a ring that they are fast for and one more.
TEST_P(Mamba2Bits, StepsOfFewRowsEqualBlocks) {
  if (GetParam() == DeviceKind::cpu) GTEST_SKIP() << "the CPU has one way for all batches";
  for (const auto& [shape, dtype] : std::vector<std::pair<mamba2::Shape, Dtype>>{
           {{4, 2, 64, 128}, Dtype::bfloat16}, {{3, 1, 32, 128}, Dtype::float32}, {{2, 2, 128, 128}, Dtype::float16}}) {
    const Mamba2Problem problem = random_problem(shape, 5, 9, dtype, 15);
    const Mamba2Problem cycles = random_problem(shape, 1, 40, dtype, 16);  // every position of a ring
    for (const std::int64_t L : {1, 2, 3, 5, 15, 16, 17}) {
      for (const Mamba2Arm& arm : replay_arms(L)) {
        if (!is_published(arm)) continue;
        SCOPED_TRACE(arm_name(arm) + " head_dim " + std::to_string(shape.head_dim));
        expect_steps_equal_blocks(GetParam(), problem, arm, 2);
        expect_modes_agree(GetParam(), cycles, arm);
      }
    }
  }
}

// Many heads instead of many sequences, or few of both: few launches, for the sanitizers.
TEST_P(Mamba2Bits, ManyHeadsStreamToo) {
  const auto many = random_problem({352, 8, 64, 128}, 3, 9, Dtype::bfloat16, 14);
  const auto few = random_problem({4, 2, 64, 128}, 3, 9, Dtype::bfloat16, 14);
  int turn = 0;
  for (const auto& arm : every_arm(4)) {
    if (turn++ % 7 == 0 || is_published(arm)) expect_steps_equal_blocks(GetParam(), many, arm, 1);
    if (is_published(arm)) expect_steps_equal_blocks(GetParam(), few, arm, 1);
  }
}

// All sequences' tokens in calls of one, against calls of several: rows at different ring positions, a padded one among
// them, one whose state goes through subnormal numbers and one with an infinite state.
void expect_blocks_equal_steps(DeviceKind kind, const Mamba2Problem& problem, const Mamba2Arm& arm) {
  SCOPED_TRACE(arm_name(arm) + " head_dim " + std::to_string(problem.shape.head_dim));
  const std::int64_t sequences = problem.sequences;
  const std::int64_t T = problem.tokens - 4;
  Mamba2Decoder steps(kind, problem, arm, sequences + 1);
  Mamba2Decoder blocks(kind, problem, arm, sequences + 1);
  const auto state_of = [&](float value) {
    return std::vector<float>(
        static_cast<std::size_t>(problem.shape.num_heads * problem.shape.head_dim * problem.shape.state_size), value);
  };
  for (Mamba2Decoder* decoder : {&steps, &blocks}) {
    decoder->set_state(0, state_of(2e-38F));
    decoder->set_state(static_cast<std::int32_t>(sequences - 1), state_of(__builtin_inff()));
    for (std::int64_t s = 1; s < sequences; ++s) decoder->feed({{static_cast<std::int32_t>(s), s, 0}}, s % 5);
  }
  const auto rows_at = [&](std::int64_t t) {
    std::vector<FeedRow> rows;
    for (std::int64_t s = sequences - 1; s >= 0; --s) rows.push_back({static_cast<std::int32_t>(s), s, s % 5 + t});
    rows.insert(rows.begin() + 1, FeedRow{-1, 0, 0});
    return rows;
  };
  std::vector<Bytes> expected;
  for (std::int64_t t = 0; t < T; ++t) expected.push_back(steps.feed(rows_at(t), 1));
  std::int64_t first = 0;
  for (const std::int64_t tokens : {std::int64_t{5}, T - 7, std::int64_t{2}}) {
    const Bytes y = blocks.feed(rows_at(first), tokens);
    for (std::int64_t row = 0; row <= sequences; ++row) {
      for (std::int64_t t = 0; t < tokens; ++t) {
        ASSERT_EQ(token_bits(problem, y, tokens, row, t),
                  token_bits(problem, expected[static_cast<std::size_t>(first + t)], 1, row, 0))
            << "row " << row << " token " << first + t;
      }
    }
    first += tokens;
  }
  for (std::int64_t s = 0; s < sequences; ++s) ASSERT_EQ(steps.slot_bits(s), blocks.slot_bits(s)) << "sequence " << s;
  EXPECT_EQ(steps.counts().saturated, blocks.counts().saturated);
  EXPECT_EQ(steps.counts().subnormal, blocks.counts().subnormal);
  EXPECT_EQ(steps.counts().non_finite, blocks.counts().non_finite);
  if (!arm.replay || arm.form.buffer_len < T) {
    EXPECT_GT(steps.counts().non_finite, 0U);
    EXPECT_GT(steps.counts().subnormal, 0U);
  }
}

// Rows whose x is zero keep what their state was: in the first sequence every third.
Mamba2Problem with_idle_rows(Mamba2Problem problem) {
  const std::int64_t rows = problem.shape.num_heads * problem.shape.head_dim;
  for (std::int64_t t = 0; t < problem.tokens; ++t) {
    for (std::int64_t row = 0; row < rows; row += 3) problem.x[static_cast<std::size_t>(t * rows + row)] = 0.0F;
  }
  return problem;
}

std::vector<Mamba2Arm> scanned_arms(const std::vector<std::int64_t>& lengths) {
  std::vector<Mamba2Arm> arms = exact_arms();
  arms.push_back({false, {}, {Dtype::float16, Overflow::saturate}});
  for (const std::int64_t L : lengths) {
    for (const Mamba2Arm& arm : replay_arms(L)) {
      if (arm.form.route == mamba2::Route::output_only && arm.form.flush == mamba2::Flush::summed) arms.push_back(arm);
    }
  }
  return arms;
}

// Blocks of tokens at the tuned state size: heads that fill a block of a GPU, share it, or span several.
TEST_P(Mamba2Bits, ScannedBlocksEqualSteps) {
  if (GetParam() == DeviceKind::cpu) GTEST_SKIP() << "the CPU has one way for all shapes";
  int turn = 0;
  for (const auto& [shape, dtype, stride_pad] :
       std::vector<std::tuple<mamba2::Shape, Dtype, std::int64_t>>{{{136, 4, 64, 128}, Dtype::bfloat16, 8},
                                                                   {{8, 2, 48, 128}, Dtype::bfloat16, kStridePad},
                                                                   {{8, 1, 16, 128}, Dtype::float16, 4},
                                                                   {{2, 1, 128, 128}, Dtype::bfloat16, 4},
                                                                   {{4, 2, 64, 128}, Dtype::float32, 4}}) {
    Mamba2Problem problem = with_idle_rows(random_problem(shape, 5, 44, dtype, 15));
    problem.stride_pad = stride_pad;
    problem.y_dtype = dtype;
    for (const Mamba2Arm& arm : scanned_arms({1, 2, 7, 8, 16, 17, 32})) {
      if (full_sweep() || turn++ % 3 == 0) expect_blocks_equal_steps(GetParam(), problem, arm);
    }
  }
}

// A few of them in few launches, for the sanitizers.
TEST_P(Mamba2Bits, AFewScannedBlocksEqualSteps) {
  const Mamba2Problem problem = with_idle_rows(random_problem({4, 2, 64, 128}, 2, 24, Dtype::bfloat16, 16));
  for (const Mamba2Arm& arm : scanned_arms({7})) {
    const bool both_or_none = (arm.form.ring_dtype == Dtype::float32) == (arm.storage.dtype == Dtype::float32);
    if (arm.storage.dtype != Dtype::bfloat16 && (!arm.replay || both_or_none))
      expect_blocks_equal_steps(GetParam(), problem, arm);
  }
}

TEST_P(Mamba2Bits, TwoIdenticalArmsAreEqual) {
  Mamba2Problem problem = random_problem({4, 1, 40, 72}, 3, 50, Dtype::float16, 6);
  problem.y_dtype = Dtype::bfloat16;
  for (const Mamba2Arm& arm : every_arm(16)) {
    SCOPED_TRACE(arm_name(arm));
    Mamba2Decoder a(GetParam(), problem, arm, 3);
    Mamba2Decoder b(GetParam(), problem, arm, 3);
    const std::vector<FeedRow> rows = {{0, 0, 0}, {1, 1, 0}, {2, 2, 0}};
    EXPECT_EQ(a.feed(rows, problem.tokens), b.feed(rows, problem.tokens));
    for (std::int64_t slot = 0; slot < 3; ++slot) EXPECT_EQ(a.slot_bits(slot), b.slot_bits(slot));
  }
}

// Anchor (a): a buffer of one token is the exact executor, by either route and flush.
TEST_P(Mamba2Bits, BufferOfOneEqualsExact) {
  for (const mamba2::Shape& shape : {kOdd, kTuned, kWide}) {
    const Mamba2Problem problem = random_problem(shape, 2, 20, Dtype::bfloat16, 7);
    for (const Mamba2Arm& arm : replay_arms(1)) {
      SCOPED_TRACE(arm_name(arm));
      Mamba2Decoder replay(GetParam(), problem, arm, 2);
      Mamba2Decoder exact(GetParam(), problem, {false, {}, arm.storage}, 2);
      const std::vector<FeedRow> rows = {{0, 0, 0}, {1, 1, 0}};
      EXPECT_EQ(replay.feed(rows, problem.tokens), exact.feed(rows, problem.tokens));
      for (std::int64_t slot = 0; slot < 2; ++slot)
        EXPECT_EQ(replay.slot_bits(slot).state, exact.slot_bits(slot).state);
    }
  }
}

// Anchor (b): nothing rounded and a sequential flush give the exact executor's state at each flush, and its y at every
// token by the state route.
TEST_P(Mamba2Bits, SequentialFlushWithoutRoundingEqualsExact) {
  for (const mamba2::Shape& shape : {kOdd, kTuned, kWide}) {
    for (const std::int64_t L : {2, 7, 16, 64}) {
      const Mamba2Problem problem = random_problem(shape, 1, 2 * L, Dtype::float32, 8);
      for (const auto route : {mamba2::Route::output_only, mamba2::Route::state_and_output}) {
        const Mamba2Arm arm{true, {L, route, mamba2::Flush::sequential, Dtype::float32}, {}};
        SCOPED_TRACE(arm_name(arm));
        Mamba2Decoder replay(GetParam(), problem, arm, 1);
        Mamba2Decoder exact(GetParam(), problem, {}, 1);
        for (std::int64_t t = 0; t < problem.tokens; ++t) {
          const Bytes y = replay.feed({{0, 0, t}}, 1);
          const Bytes y_exact = exact.feed({{0, 0, t}}, 1);
          const bool flush = (t + 1) % L == 0;
          if (flush) {
            ASSERT_EQ(replay.slot_bits(0).state, exact.slot_bits(0).state) << "after token " << t;
          }
          if (flush || route == mamba2::Route::state_and_output) {
            ASSERT_EQ(y, y_exact) << "token " << t;
          }
        }
      }
    }
  }
}

// What reconstruct() builds from w ring entries is what a buffer of w would have flushed (ring in float32, where a
// stored entry equals the unrounded one), and the checkpoint itself right after a flush.
TEST_P(Mamba2Bits, ReconstructEqualsTheFlushOfAShorterBuffer) {
  const Mamba2Problem problem = random_problem(kOdd, 1, 16, Dtype::bfloat16, 9);
  for (const auto flush : {mamba2::Flush::summed, mamba2::Flush::sequential}) {
    for (const std::int64_t w : {1, 2, 5, 11}) {
      const Mamba2Arm longer{true, {16, mamba2::Route::output_only, flush, Dtype::float32}, {}};
      const Mamba2Arm shorter{true, {w, mamba2::Route::output_only, flush, Dtype::float32}, {}};
      Mamba2Decoder a(GetParam(), problem, longer, 3);
      Mamba2Decoder b(GetParam(), problem, shorter, 1);
      a.feed({{2, 0, 0}}, w);
      b.feed({{0, 0, 0}}, w);
      const std::vector<float> rebuilt = a.reconstructed({-1, 2});
      const std::size_t half = rebuilt.size() / 2;
      EXPECT_TRUE(std::all_of(rebuilt.begin(), rebuilt.begin() + static_cast<std::ptrdiff_t>(half),
                              [](float v) { return v == 0.0F; }));
      EXPECT_EQ(std::vector<float>(rebuilt.begin() + static_cast<std::ptrdiff_t>(half), rebuilt.end()), b.state(0));
      EXPECT_EQ(b.reconstructed({0}), b.state(0));
    }
  }
}

// A slot whose sequence ended in mid-ring serves the next sequence as a fresh one would.
TEST_P(Mamba2Bits, AResetSlotServesTheNextSequence) {
  const Mamba2Problem problem = random_problem(kOdd, 2, 20, Dtype::bfloat16, 10);
  for (const Mamba2Arm& arm : every_arm(8)) {
    SCOPED_TRACE(arm_name(arm));
    Mamba2Decoder used(GetParam(), problem, arm, 2);
    used.feed({{0, 0, 0}, {1, 1, 0}}, 13);
    used.reset_slot(1);
    const Bytes y = used.feed({{1, 0, 0}, {0, 0, 13}}, 7);
    Mamba2Decoder fresh(GetParam(), problem, arm, 2);
    const Bytes expected = fresh.feed({{1, 0, 0}}, 7);
    for (std::int64_t t = 0; t < 7; ++t)
      EXPECT_EQ(token_bits(problem, y, 7, 0, t), token_bits(problem, expected, 7, 0, t));
    EXPECT_EQ(used.slot_bits(1), fresh.slot_bits(1));
  }
}

// The negative of the checks above: a rounded ring and a rounded state do change bits.
TEST_P(Mamba2Bits, StorageTypesShowInTheBits) {
  const Mamba2Problem problem = random_problem(kOdd, 1, 20, Dtype::float32, 11);
  const mamba2::ReplayForm form{8, mamba2::Route::output_only, mamba2::Flush::summed, Dtype::float32};
  mamba2::ReplayForm rounding = form;
  rounding.ring_dtype = Dtype::bfloat16;
  Mamba2Decoder plain(GetParam(), problem, {true, form, {}}, 1);
  Mamba2Decoder ring(GetParam(), problem, {true, rounding, {}}, 1);
  Mamba2Decoder state(GetParam(), problem, {true, form, {Dtype::bfloat16, Overflow::infinity}}, 1);
  const Bytes y = plain.feed({{0, 0, 0}}, 20);
  const Bytes y_ring = ring.feed({{0, 0, 0}}, 20);
  const Bytes y_state = state.feed({{0, 0, 0}}, 20);
  EXPECT_EQ(token_bits(problem, y, 20, 0, 0), token_bits(problem, y_ring, 20, 0, 0))
      << "the current token enters unrounded";
  EXPECT_NE(token_bits(problem, y, 20, 0, 1), token_bits(problem, y_ring, 20, 0, 1));
  EXPECT_EQ(token_bits(problem, y, 20, 0, 7), token_bits(problem, y_state, 20, 0, 7)) << "y comes before the rounding";
  EXPECT_NE(token_bits(problem, y, 20, 0, 8), token_bits(problem, y_state, 20, 0, 8));
}

}  // namespace
}  // namespace replayeval::testing
