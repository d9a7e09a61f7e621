// What must agree to the last bit: the two modes, the anchors, A/A, and every arrangement of rows and slots.
#include "tests/kernels/delta_rule_arms.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <random>
#include <tuple>

namespace replayeval::testing {
namespace {

constexpr delta_rule::Shape kOdd{2, 6, 40, 24};      // odd multiples of 8, three value heads a key head
constexpr delta_rule::Shape kTuned{1, 2, 128, 128};  // the tuned size
constexpr delta_rule::Shape kWide{2, 2, 200, 8};     // beyond 128 columns

class DeltaRuleBits : public DeltaOnDevice {};
REPLAYEVAL_DELTA_ON_EACH_DEVICE(DeltaRuleBits);

// y bits of `tokens` tokens of one sequence, fed to `slot` in calls of `cuts` tokens.
Bytes feed_in_cuts(const DeltaProblem& problem, DeltaDecoder& decoder, FeedRow row,
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

void expect_modes_agree(DeviceKind kind, const DeltaProblem& problem, const DeltaArm& arm) {
  SCOPED_TRACE(arm_name(arm));
  const std::int64_t T = problem.tokens;
  DeltaDecoder stepwise(kind, problem, arm, 1);
  const Bytes expected =
      feed_in_cuts(problem, stepwise, {0, 0, 0}, std::vector<std::int64_t>(static_cast<std::size_t>(T), 1));
  for (const std::vector<std::int64_t>& cuts :
       {std::vector<std::int64_t>{T}, {1, T - 1}, {3, 1, 7, T - 11}, {T - 2, 2}}) {
    DeltaDecoder blocks(kind, problem, arm, 1);
    EXPECT_EQ(feed_in_cuts(problem, blocks, {0, 0, 0}, cuts), expected) << "y, first cut " << cuts[0];
    EXPECT_EQ(blocks.slot_bits(0), stepwise.slot_bits(0)) << "caches, first cut " << cuts[0];
    EXPECT_EQ(blocks.counts().saturated, stepwise.counts().saturated);
    EXPECT_EQ(blocks.counts().subnormal, stepwise.counts().subnormal);
    EXPECT_EQ(blocks.counts().non_finite, stepwise.counts().non_finite);
  }
}

TEST_P(DeltaRuleBits, TeacherForcedEqualsStepwiseForEveryArm) {
  const std::vector<std::int64_t> lengths =
      full_sweep() ? std::vector<std::int64_t>{1, 2, 3, 4, 5, 7, 8, 15, 16, 17, 31, 32, 33, 63, 64}
                   : std::vector<std::int64_t>{1, 2, 5, 16};
  const DeltaProblem odd =
      random_delta_problem(family(), kOdd, 1, 37, Dtype::float32, 1);  // which a bfloat16 ring rounds
  for (const std::int64_t L : lengths) {
    for (const DeltaArm& arm : every_delta_arm(L)) expect_modes_agree(device(), odd, arm);
  }
}

TEST_P(DeltaRuleBits, TeacherForcedEqualsStepwiseAtOtherShapesAndTypes) {
  for (const delta_rule::Shape& shape : {kTuned, kWide}) {
    for (const Dtype dtype : {Dtype::float32, Dtype::float16}) {
      DeltaProblem problem = random_delta_problem(family(), shape, 1, 70, dtype, 2);
      problem.y_dtype = dtype;
      expect_modes_agree(device(), problem, {false, {}, {Dtype::bfloat16, Overflow::saturate}});
      for (const std::int64_t L : {16, 64}) {
        const std::vector<DeltaArm> arms = replay_delta_arms(L);
        for (std::size_t i = 0; i < arms.size(); i += full_sweep() ? 1 : 11)
          expect_modes_agree(device(), problem, arms[i]);
      }
    }
  }
}

// Rows of one call at different ring positions, some of them padded, against each sequence alone.
TEST_P(DeltaRuleBits, RowsAtMixedRingPositionsAreIndependent) {
  const DeltaProblem problem = random_delta_problem(family(), kOdd, 5, 40, Dtype::float32, 3);
  for (const DeltaArm& arm : every_delta_arm(6)) {
    SCOPED_TRACE(arm_name(arm));
    DeltaDecoder together(device(), problem, arm, 9);
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
      DeltaDecoder alone(device(), problem, arm, 1);
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
TEST_P(DeltaRuleBits, BatchSizeRowOrderAndSlotMapChangeNothing) {
  const std::int64_t sequences = 33;
  const DeltaProblem problem = random_delta_problem(family(), {1, 2, 24, 16}, sequences, 6, Dtype::float32, 4);
  for (const DeltaArm& arm : every_delta_arm(4)) {
    SCOPED_TRACE(arm_name(arm));
    DeltaDecoder in_order(device(), problem, arm, sequences);
    DeltaDecoder shuffled(device(), problem, arm, 2 * sequences);
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
TEST_P(DeltaRuleBits, LargeBatchesEqualSmallOnes) {
  const std::int64_t sequences = 66;
  int turn = 0;
  for (const delta_rule::Shape& shape :
       std::vector<delta_rule::Shape>{{4, 64, 24, 16}, {8, 32, 64, 8}, {2, 16, 128, 24}, {4, 32, 200, 8}}) {
    const DeltaProblem problem = random_delta_problem(family(), shape, sequences, 12, Dtype::bfloat16, 12);
    for (const DeltaArm& arm : replay_delta_arms(5)) {
      {
        if (arm.form.route != Route::output_only || (!full_sweep() && (++turn % 7) != 0)) continue;
        SCOPED_TRACE(arm_name(arm));
        DeltaDecoder together(device(), problem, arm, sequences);
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
          DeltaDecoder alone(device(), problem, arm, 1);
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
void expect_steps_equal_blocks(DeviceKind kind, const DeltaProblem& problem, const DeltaArm& arm, std::size_t few) {
  const std::int64_t sequences = problem.sequences;
  const std::int64_t leads = std::min<std::int64_t>(arm.replay ? arm.form.buffer_len : 1, 6);
  DeltaDecoder large(kind, problem, arm, sequences + 3);
  DeltaDecoder small(kind, problem, arm, sequences + 3);
  const auto slot = [&](std::int64_t s) { return static_cast<std::int32_t>((s + 3) % (sequences + 3)); };
  const std::vector<float> infinite(
      static_cast<std::size_t>(problem.shape.num_value_heads * problem.shape.value_dim * problem.shape.key_dim),
      __builtin_inff());
  for (DeltaDecoder* decoder : {&large, &small}) {
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
TEST_P(DeltaRuleBits, StreamedStepsEqualBlocks) {
  if (device() == DeviceKind::cpu) GTEST_SKIP() << "the CPU has one way for all batches";
  int turn = 0;
  for (const auto& [shape, most, dtype] :
       std::vector<std::tuple<delta_rule::Shape, std::int64_t, Dtype>>{{{4, 8, 128, 128}, 129, Dtype::bfloat16},
                                                                       {{1, 8, 128, 64}, 257, Dtype::float32},
                                                                       {{2, 2, 128, 256}, 135, Dtype::float16}}) {
    DeltaProblem problem = random_delta_problem(family(), shape, most, 9, dtype, 13);
    problem.stride_pad = dtype == Dtype::bfloat16 ? kStridePad : 4;  // rows that can be read four elements at a time
    for (const std::int64_t L : {1, 4, 16, 7, 32, 64}) {
      for (const DeltaArm& arm : every_delta_arm(L)) {
        const bool streams = !arm.replay || (arm.form.route == Route::output_only && arm.form.flush == Flush::summed);
        if (!streams || (!full_sweep() && turn++ % 7 != 0)) continue;
        SCOPED_TRACE(arm_name(arm) + " value_dim " + std::to_string(shape.value_dim));
        expect_steps_equal_blocks(device(), problem, arm, 16);
      }
    }
  }
}

// A step as engines take it: the case that has kernels of its own.
bool is_published(const DeltaArm& arm) {
  return arm.replay && arm.form.route == Route::output_only && arm.form.ring_form == delta_rule::RingForm::deltas &&
         arm.form.ring_dtype == Dtype::bfloat16;
}

// Batches too small for that, at every length of a ring that they are fast for and one more.
TEST_P(DeltaRuleBits, StepsOfFewRowsEqualBlocks) {
  if (device() == DeviceKind::cpu) GTEST_SKIP() << "the CPU has one way for all batches";
  for (const auto& [shape, dtype] :
       std::vector<std::pair<delta_rule::Shape, Dtype>>{{{2, 4, 128, 128}, Dtype::bfloat16},
                                                        {{1, 3, 128, 64}, Dtype::float32},
                                                        {{2, 2, 128, 96}, Dtype::float16},
                                                        {{4, 8, 128, 128}, Dtype::bfloat16}}) {
    const DeltaProblem problem = random_delta_problem(family(), shape, 5, 9, dtype, 15);
    const DeltaProblem cycles = random_delta_problem(family(), shape, 1, 40, dtype, 16);  // every position of a ring
    for (const std::int64_t L : {1, 2, 3, 5, 15, 16, 17}) {
      for (const DeltaArm& arm : every_delta_arm(L)) {
        if (!is_published(arm)) continue;
        SCOPED_TRACE(arm_name(arm) + " value_dim " + std::to_string(shape.value_dim));
        expect_steps_equal_blocks(device(), problem, arm, 2);
        expect_modes_agree(device(), cycles, arm);
      }
    }
  }
}

// One sequence of so many heads that it streams, at every position of a ring and its flush, against blocks.
TEST_P(DeltaRuleBits, StreamedRingsEqualBlocks) {
  if (device() == DeviceKind::cpu) GTEST_SKIP() << "the CPU has one way for all batches";
  for (const auto& [shape, L] : std::vector<std::pair<delta_rule::Shape, std::int64_t>>{{{32, 128, 128, 128}, 16},
                                                                                        {{128, 128, 128, 128}, 16},
                                                                                        {{128, 128, 128, 128}, 5},
                                                                                        {{44, 132, 128, 128}, 7},
                                                                                        {{64, 256, 128, 64}, 16},
                                                                                        {{128, 256, 128, 64}, 6},
                                                                                        {{32, 64, 128, 256}, 16}}) {
    DeltaProblem problem = random_delta_problem(family(), shape, 1, 37, Dtype::bfloat16, 17);
    problem.stride_pad = 4;
    for (const DeltaArm& arm : replay_delta_arms(L)) {
      if (arm.form.route != Route::output_only || arm.form.ring_form != delta_rule::RingForm::deltas) continue;
      if (is_published(arm) || (shape.value_dim == 128 && L == 5)) expect_modes_agree(device(), problem, arm);
    }
  }
}

// Many heads instead of many sequences, or few of both: few launches, for the sanitizers.
TEST_P(DeltaRuleBits, ManyHeadsStreamToo) {
  const auto many = random_delta_problem(family(), {88, 176, 128, 128}, 3, 9, Dtype::bfloat16, 14);
  const auto few = random_delta_problem(family(), {1, 2, 128, 128}, 3, 9, Dtype::bfloat16, 14);
  int turn = 0;
  for (const auto& arm : every_delta_arm(4)) {
    if (turn++ % 7 == 0 || is_published(arm)) expect_steps_equal_blocks(device(), many, arm, 1);
    if (is_published(arm)) expect_steps_equal_blocks(device(), few, arm, 1);
  }
}

// All sequences' tokens in calls of one, against calls of several: rows at different ring positions, a padded one among
// them, one whose state goes through subnormal numbers and one with an infinite state.
void expect_blocks_equal_steps(DeviceKind kind, const DeltaProblem& problem, const DeltaArm& arm) {
  SCOPED_TRACE(arm_name(arm) + " value_dim " + std::to_string(problem.shape.value_dim));
  const std::int64_t sequences = problem.sequences;
  const std::int64_t T = problem.tokens - 4;
  DeltaDecoder steps(kind, problem, arm, sequences + 1);
  DeltaDecoder blocks(kind, problem, arm, sequences + 1);
  const auto state_of = [&](float value) {
    return std::vector<float>(
        static_cast<std::size_t>(problem.shape.num_value_heads * problem.shape.value_dim * problem.shape.key_dim),
        value);
  };
  for (DeltaDecoder* decoder : {&steps, &blocks}) {
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

// Rows whose v is zero keep a small state small: in the first sequence every third.
DeltaProblem with_idle_rows(DeltaProblem problem) {
  const std::int64_t rows = problem.shape.num_value_heads * problem.shape.value_dim;
  for (std::int64_t t = 0; t < problem.tokens; ++t) {
    for (std::int64_t row = 0; row < rows; row += 3) problem.v[static_cast<std::size_t>(t * rows + row)] = 0.0F;
  }
  return problem;
}

std::vector<DeltaArm> scanned_arms(const std::vector<std::int64_t>& lengths) {
  std::vector<DeltaArm> arms = exact_delta_arms();
  arms.push_back({false, {}, {Dtype::float16, Overflow::saturate}});
  for (const std::int64_t L : lengths) {
    for (const DeltaArm& arm : replay_delta_arms(L)) {
      if (arm.form.route == Route::output_only && arm.form.ring_form == delta_rule::RingForm::deltas) {
        arms.push_back(arm);
      }
    }
  }
  return arms;
}

// Blocks of tokens at the tuned key dim: heads that fill a block of a GPU, share it, or span several.
TEST_P(DeltaRuleBits, ScannedBlocksEqualSteps) {
  if (device() == DeviceKind::cpu) GTEST_SKIP() << "the CPU has one way for all shapes";
  int turn = 0;
  for (const auto& [shape, dtype, stride_pad] :
       std::vector<std::tuple<delta_rule::Shape, Dtype, std::int64_t>>{{{28, 56, 128, 128}, Dtype::bfloat16, 8},
                                                                       {{2, 8, 128, 48}, Dtype::bfloat16, kStridePad},
                                                                       {{1, 8, 128, 16}, Dtype::float16, 4},
                                                                       {{1, 2, 128, 64}, Dtype::bfloat16, 4},
                                                                       {{2, 2, 128, 256}, Dtype::float32, 4}}) {
    DeltaProblem problem = with_idle_rows(random_delta_problem(family(), shape, 5, 44, dtype, 15));
    problem.stride_pad = stride_pad;
    problem.y_dtype = dtype;
    for (const DeltaArm& arm : scanned_arms({1, 7, 16, 32})) {
      if (full_sweep() || turn++ % 3 == 0) expect_blocks_equal_steps(device(), problem, arm);
    }
  }
}

// A few of them in few launches, for the sanitizers.
TEST_P(DeltaRuleBits, AFewScannedBlocksEqualSteps) {
  const DeltaProblem problem =
      with_idle_rows(random_delta_problem(family(), {2, 4, 128, 64}, 2, 24, Dtype::bfloat16, 16));
  for (const DeltaArm& arm : scanned_arms({7})) {
    const bool both_or_none = (arm.form.ring_dtype == Dtype::float32) == (arm.storage.dtype == Dtype::float32);
    if (arm.storage.dtype != Dtype::bfloat16 && (!arm.replay || both_or_none))
      expect_blocks_equal_steps(device(), problem, arm);
  }
}

TEST_P(DeltaRuleBits, TwoIdenticalArmsAreEqual) {
  DeltaProblem problem = random_delta_problem(family(), {1, 4, 72, 40}, 3, 50, Dtype::float16, 6);
  problem.y_dtype = Dtype::bfloat16;
  for (const DeltaArm& arm : every_delta_arm(16)) {
    SCOPED_TRACE(arm_name(arm));
    DeltaDecoder a(device(), problem, arm, 3);
    DeltaDecoder b(device(), problem, arm, 3);
    const std::vector<FeedRow> rows = {{0, 0, 0}, {1, 1, 0}, {2, 2, 0}};
    EXPECT_EQ(a.feed(rows, problem.tokens), b.feed(rows, problem.tokens));
    for (std::int64_t slot = 0; slot < 3; ++slot) EXPECT_EQ(a.slot_bits(slot), b.slot_bits(slot));
  }
}

// Anchor (a): a buffer of one token is the exact executor, by either route and flush.
TEST_P(DeltaRuleBits, BufferOfOneEqualsExact) {
  for (const delta_rule::Shape& shape : {kOdd, kTuned, kWide}) {
    const DeltaProblem problem = random_delta_problem(family(), shape, 2, 20, Dtype::bfloat16, 7);
    for (const DeltaArm& arm : replay_delta_arms(1)) {
      SCOPED_TRACE(arm_name(arm));
      DeltaDecoder replay(device(), problem, arm, 2);
      DeltaDecoder exact(device(), problem, {false, {}, arm.storage}, 2);
      const std::vector<FeedRow> rows = {{0, 0, 0}, {1, 1, 0}};
      EXPECT_EQ(replay.feed(rows, problem.tokens), exact.feed(rows, problem.tokens));
      for (std::int64_t slot = 0; slot < 2; ++slot)
        EXPECT_EQ(replay.slot_bits(slot).state, exact.slot_bits(slot).state);
    }
  }
}

// Anchor (b): nothing rounded and a sequential flush give the exact executor's state at each flush, and its y at every
// token by the state route.
TEST_P(DeltaRuleBits, SequentialFlushWithoutRoundingEqualsExact) {
  for (const delta_rule::Shape& shape : {kOdd, kTuned, kWide}) {
    for (const std::int64_t L : {2, 7, 16, 64}) {
      const DeltaProblem problem = random_delta_problem(family(), shape, 1, 2 * L, Dtype::float32, 8);
      for (const auto route : {Route::output_only, Route::state_and_output}) {
        const DeltaArm arm{true, {L, delta_rule::RingForm::inputs, route, Flush::sequential, Dtype::float32}, {}};
        SCOPED_TRACE(arm_name(arm));
        DeltaDecoder replay(device(), problem, arm, 1);
        DeltaDecoder exact(device(), problem, {}, 1);
        for (std::int64_t t = 0; t < problem.tokens; ++t) {
          const Bytes y = replay.feed({{0, 0, t}}, 1);
          const Bytes y_exact = exact.feed({{0, 0, t}}, 1);
          const bool flush = (t + 1) % L == 0;
          if (flush) {
            ASSERT_EQ(replay.slot_bits(0).state, exact.slot_bits(0).state) << "after token " << t;
          }
          if (flush || route == Route::state_and_output) {
            ASSERT_EQ(y, y_exact) << "token " << t;
          }
        }
      }
    }
  }
}

// What reconstruct() builds from w ring entries is what a buffer of w would have flushed (ring in float32, where a
// stored entry equals the unrounded one), and the checkpoint itself right after a flush. A deltas ring holds the d that
// its route found, so there the routes must agree.
TEST_P(DeltaRuleBits, ReconstructEqualsTheFlushOfAShorterBuffer) {
  const DeltaProblem problem = random_delta_problem(family(), kOdd, 1, 16, Dtype::bfloat16, 9);
  for (DeltaArm longer : replay_delta_arms(16)) {
    if (longer.form.ring_dtype != Dtype::float32 || longer.storage.dtype != Dtype::float32) continue;
    const bool deltas = longer.form.ring_form == delta_rule::RingForm::deltas;
    if (deltas && longer.form.route == Route::output_only) continue;
    for (const std::int64_t w : {1, 2, 5, 11}) {
      DeltaArm shorter = longer;
      shorter.form.buffer_len = w;
      SCOPED_TRACE(arm_name(shorter));
      DeltaDecoder a(device(), problem, longer, 3);
      DeltaDecoder b(device(), problem, shorter, 1);
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
TEST_P(DeltaRuleBits, AResetSlotServesTheNextSequence) {
  const DeltaProblem problem = random_delta_problem(family(), kOdd, 2, 20, Dtype::bfloat16, 10);
  for (const DeltaArm& arm : every_delta_arm(8)) {
    SCOPED_TRACE(arm_name(arm));
    DeltaDecoder used(device(), problem, arm, 2);
    used.feed({{0, 0, 0}, {1, 1, 0}}, 13);
    used.reset_slot(1);
    const Bytes y = used.feed({{1, 0, 0}, {0, 0, 13}}, 7);
    DeltaDecoder fresh(device(), problem, arm, 2);
    const Bytes expected = fresh.feed({{1, 0, 0}}, 7);
    for (std::int64_t t = 0; t < 7; ++t)
      EXPECT_EQ(token_bits(problem, y, 7, 0, t), token_bits(problem, expected, 7, 0, t));
    EXPECT_EQ(used.slot_bits(1), fresh.slot_bits(1));
  }
}

// The negative of the checks above: a rounded ring and a rounded state do change bits, and so do the ring forms.
TEST_P(DeltaRuleBits, StorageTypesShowInTheBits) {
  const DeltaProblem problem = random_delta_problem(family(), kOdd, 1, 20, Dtype::float32, 11);
  std::vector<Bytes> plain;
  for (const auto ring_form : {delta_rule::RingForm::deltas, delta_rule::RingForm::inputs}) {
    const delta_rule::ReplayForm form{8, ring_form, Route::output_only, Flush::summed, Dtype::float32};
    delta_rule::ReplayForm rounding = form;
    rounding.ring_dtype = Dtype::bfloat16;
    const auto run = [&](const DeltaArm& arm) {
      DeltaDecoder decoder(device(), problem, arm, 1);
      return decoder.feed({{0, 0, 0}}, 20);
    };
    const Bytes y = run({true, form, {}});
    const Bytes y_ring = run({true, rounding, {}});
    const Bytes y_state = run({true, form, {Dtype::bfloat16, Overflow::infinity}});
    EXPECT_EQ(token_bits(problem, y, 20, 0, 0), token_bits(problem, y_ring, 20, 0, 0))
        << "the current token enters unrounded";
    EXPECT_NE(token_bits(problem, y, 20, 0, 1), token_bits(problem, y_ring, 20, 0, 1));
    EXPECT_EQ(token_bits(problem, y, 20, 0, 7), token_bits(problem, y_state, 20, 0, 7))
        << "y comes before the rounding";
    EXPECT_NE(token_bits(problem, y, 20, 0, 8), token_bits(problem, y_state, 20, 0, 8));
    plain.push_back(y);
  }
  EXPECT_NE(plain[0], plain[1]);
}

}  // namespace
}  // namespace replayeval::testing
