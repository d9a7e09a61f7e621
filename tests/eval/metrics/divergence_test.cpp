#include "eval/metrics/divergence.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "eval/metrics/device_divergence.h"
#include "tests/kernels/device_buffer.h"

namespace replayeval::metrics {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

// [3, rows, vocab]: baseline, its copy, and an arm that differs by about `size`.
at::Tensor three_arms(std::int64_t rows, std::int64_t vocab, double size) {
  at::manual_seed(rows * 7919 + vocab);
  const at::Tensor baseline = at::randn({rows, vocab}) * 3.0;
  return at::stack({baseline, baseline, baseline + size * at::randn({rows, vocab})}).contiguous();
}

at::Tensor targets_for(std::int64_t rows, std::int64_t vocab) {
  return at::arange(rows, at::kLong).mul(31).fmod(vocab);
}

DivergenceAccumulator accumulator(Dtype dtype = Dtype::float32) { return {{"base", "again", "other"}, 0, dtype}; }

TEST(DivergenceAccumulator, AgreesWithAtensOwnLogSoftmax) {
  const at::Tensor logits = three_arms(13, 37, 0.5), targets = targets_for(13, 37);
  DivergenceAccumulator scores = accumulator();
  scores.add(logits, targets);
  ASSERT_EQ(scores.rows(), 13);
  const at::Tensor log_p = at::log_softmax(logits[0].to(at::kDouble), 1);
  const at::Tensor log_q = at::log_softmax(logits[2].to(at::kDouble), 1);
  const at::Tensor kl = (log_p.exp() * (log_p - log_q)).sum(1);
  const TokenDivergence& other = scores.tokens(2);
  for (std::int64_t r = 0; r < 13; ++r) {
    const auto row = static_cast<std::size_t>(r);
    const std::int64_t target = targets[r].item<std::int64_t>();
    EXPECT_NEAR(other.log_prob[row], log_q[r][target].item<double>(), 1e-13);
    EXPECT_NEAR(scores.tokens(0).log_prob[row], log_p[r][target].item<double>(), 1e-13);
    EXPECT_NEAR(other.kl[row], kl[r].item<double>(), 1e-6 * kl[r].item<double>());
    const double dp = std::exp(log_q[r][target].item<double>()) - std::exp(log_p[r][target].item<double>());
    EXPECT_NEAR(other.delta_p[row], dp, 1e-7);
    EXPECT_EQ(other.same_top1[row] != 0,
              log_p[r].argmax().item<std::int64_t>() == log_q[r].argmax().item<std::int64_t>());
  }
}

TEST(DivergenceAccumulator, OfAnIdenticalArmIsExactlyNothing) {
  for (const std::int64_t vocab : {33, 1001}) {
    DivergenceAccumulator scores = accumulator();
    scores.add(three_arms(29, vocab, 1e-6), targets_for(29, vocab));
    const TokenDivergence &base = scores.tokens(0), &again = scores.tokens(1);
    EXPECT_EQ(base.log_prob, again.log_prob);
    for (std::size_t row = 0; row < again.size(); ++row) {
      EXPECT_EQ(again.kl[row], 0.0F);
      EXPECT_EQ(again.delta_p[row], 0.0F);
      EXPECT_EQ(again.same_top1[row], 1);
      EXPECT_EQ(again.rank[row], base.rank[row]);
      EXPECT_GT(scores.tokens(2).kl[row], 0.0F);  // a difference of 1e-6 is seen
    }
  }
}

TEST(DivergenceAccumulator, BitsDoNotDependOnHowRowsAreGrouped) {
  const at::Tensor logits = three_arms(40, 517, 1e-3), targets = targets_for(40, 517);
  DivergenceAccumulator whole = accumulator(), parts = accumulator();
  whole.add(logits, targets);
  for (std::int64_t begin = 0; begin < 40; begin += 7) {
    const std::int64_t count = std::min<std::int64_t>(7, 40 - begin);
    parts.add(logits.narrow(1, begin, count), targets.narrow(0, begin, count));
  }
  EXPECT_EQ(parts.rows(), 40);
  for (std::size_t arm = 0; arm < 3; ++arm) {
    EXPECT_EQ(whole.tokens(arm).log_prob, parts.tokens(arm).log_prob);
    EXPECT_EQ(whole.tokens(arm).kl, parts.tokens(arm).kl);
    EXPECT_EQ(whole.tokens(arm).delta_p, parts.tokens(arm).delta_p);
  }
}

TEST(DivergenceAccumulator, TakesAnyArmAsTheBaseline) {
  const at::Tensor logits = three_arms(8, 50, 0.3), targets = targets_for(8, 50);
  DivergenceAccumulator last({"base", "again", "other"}, 2, Dtype::float32);
  last.add(logits, targets);
  DivergenceAccumulator swapped({"other", "base"}, 0, Dtype::float32);
  swapped.add(at::stack({logits[2], logits[0]}), targets);
  EXPECT_EQ(last.tokens(0).kl, swapped.tokens(1).kl);
  EXPECT_THAT(last.tokens(2).kl, ::testing::Each(0.0F));
}

// The kernels for logits that lie on a GPU: another implementation of the same formulas.
class CudaDivergence : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::string reason = replayeval::testing::why_unavailable(DeviceKind::cuda);
    if (!reason.empty()) GTEST_SKIP() << reason;
  }
  static std::vector<std::vector<RowScore>> score(const std::vector<at::Tensor>& logits, const at::Tensor& targets) {
    std::vector<at::Tensor> there;
    for (const at::Tensor& arm : logits) there.push_back(arm.to(at::kCUDA));
    return score_on_gpu(there, targets.to(at::kCUDA), 0, Dtype::float32)();
  }
};

TEST_F(CudaDivergence, AgreesWithTheRowKernels) {
  for (const double size : {1e-6, 1e-3, 0.05, 2.0}) {
    at::Tensor logits = three_arms(21, 777, size);
    for (const std::int64_t arm : {0, 1}) logits[arm][3][5] = logits[arm][3][700] = 60.0F;  // a tie at the top
    logits[2][4][9] = 60.0F;                                                                // another top
    const at::Tensor targets = targets_for(21, 777);
    const std::vector<at::Tensor> arms = {logits[0], logits[1], logits[2]};
    const auto found = score(arms, targets);
    DivergenceAccumulator expected = accumulator();
    expected.add(logits, targets);
    for (std::size_t arm = 0; arm < 3; ++arm) {
      const TokenDivergence& tokens = expected.tokens(arm);
      for (std::size_t row = 0; row < 21; ++row) {
        const RowScore& score = found[arm][row];
        ASSERT_TRUE(score.finite);
        EXPECT_NEAR(score.log_prob, tokens.log_prob[row], 1e-13);
        EXPECT_NEAR(score.kl, tokens.kl[row], 2e-7 * score.kl) << size;
        EXPECT_NEAR(score.delta_p, tokens.delta_p[row], 1e-7 * std::abs(score.delta_p) + 1e-16);
        EXPECT_EQ(score.rank, tokens.rank[row]);
        EXPECT_EQ(score.same_top1, tokens.same_top1[row] != 0);
        EXPECT_EQ(score.tie, tokens.tie[row] != 0);
        if (arm != 1) continue;
        EXPECT_EQ(score.kl, 0.0);
        EXPECT_EQ(score.delta_p, 0.0);
      }
    }
  }
}

TEST_F(CudaDivergence, KeepsTinyDivergences) {
  at::Tensor logits = three_arms(4, 4096, 0.0);
  at::Tensor changed = logits[2];
  for (std::int64_t row = 0; row < 4; ++row)
    changed[row][row * 11] = std::nextafter(changed[row][row * 11].item<float>(), 100.0F);
  DivergenceAccumulator expected = accumulator();
  expected.add(logits, targets_for(4, 4096));
  const std::vector<at::Tensor> arms = {logits[0], changed};
  const auto found = score(arms, targets_for(4, 4096));
  for (std::size_t row = 0; row < 4; ++row) {
    ASSERT_GT(found[1][row].kl, 0.0);
    ASSERT_LT(found[1][row].kl, 1e-13);
    EXPECT_NEAR(found[1][row].kl, expected.tokens(2).kl[row], 1e-6 * found[1][row].kl);
  }
}

TEST_F(CudaDivergence, GivesBitsThatDoNotDependOnTheOtherRows) {
  const std::int64_t vocab = 131073;
  const at::Tensor logits = three_arms(6, vocab, 0.1), targets = targets_for(6, vocab);
  const auto found = score({logits[0], logits[2]}, targets);
  DivergenceAccumulator expected = accumulator();
  expected.add(logits, targets);
  for (std::int64_t r = 0; r < 6; ++r) {
    const auto row = static_cast<std::size_t>(r);
    EXPECT_NEAR(found[1][row].kl, expected.tokens(2).kl[row], 2e-7 * found[1][row].kl);
    const auto alone = score({logits[0].narrow(0, r, 1), logits[2].narrow(0, r, 1)}, targets.narrow(0, r, 1));
    EXPECT_EQ(alone[1][0].kl, found[1][row].kl);
    EXPECT_EQ(alone[1][0].log_prob, found[1][row].log_prob);
  }
}

// The sweep's references come from a row's first logits.
TEST_F(CudaDivergence, AgreesWhereTheRowsFirstLogitsSayLittle) {
  const std::int64_t vocab = 5003;
  at::Tensor logits = three_arms(6, vocab, 1e-2);
  const auto set = [&](std::int64_t row, std::int64_t place, float value) {
    for (const std::int64_t arm : {0, 1, 2}) logits[arm][row][place] = value + (arm == 2 ? 0.125F : 0.0F);
  };
  set(0, 4000, 40.0F);                               // nearly all of the probability
  set(1, 4000, 30.0F), set(1, 4001, 29.5F);          // of two
  set(2, 4000, 200.0F);                              // too far above for the sweep
  set(3, 17, -3e4F), set(3, 18, 3e4F);               // too far below
  logits[2][4].add_(8.0F);                           // a common shift
  logits[2][5][0] = 300.0F, logits[2][5][1] = 9.0F;  // in the arm alone
  const at::Tensor targets = at::tensor({4000, 4001, 3, 18, 99, 0}, at::kLong);
  const auto found = score({logits[0], logits[1], logits[2]}, targets);
  DivergenceAccumulator expected = accumulator();
  expected.add(logits, targets);
  for (std::size_t row = 0; row < 6; ++row) {
    for (const std::size_t arm : {0U, 2U}) {
      const TokenDivergence& tokens = expected.tokens(arm);
      EXPECT_NEAR(found[arm][row].log_prob, tokens.log_prob[row], 1e-13 + 1e-15 * std::abs(tokens.log_prob[row]))
          << row;
      EXPECT_NEAR(found[arm][row].kl, tokens.kl[row], 2e-7 * tokens.kl[row] + 1e-30) << row;
      EXPECT_EQ(found[arm][row].rank, tokens.rank[row]);
    }
    EXPECT_EQ(found[1][row].kl, 0.0);
    EXPECT_EQ(found[1][row].log_prob, found[0][row].log_prob);
  }
}

TEST_F(CudaDivergence, ABaselineHasTheBitsThatItHasAlone) {
  const at::Tensor logits = three_arms(7, 4097, 0.1), targets = targets_for(7, 4097);
  const auto alone = score({logits[0]}, targets), other = score({logits[2]}, targets);
  const auto both = score({logits[0], logits[2]}, targets);
  for (std::size_t row = 0; row < 7; ++row) {
    EXPECT_EQ(alone[0][row].log_prob, both[0][row].log_prob);
    EXPECT_EQ(other[0][row].log_prob, both[1][row].log_prob);
    EXPECT_EQ(alone[0][row].rank, both[0][row].rank);
    EXPECT_EQ(alone[0][row].tie, both[0][row].tie);
  }
}

TEST_F(CudaDivergence, ReportsRowsThatAreNotFinite) {
  const at::Tensor logits = three_arms(5, 9, 0.1);
  logits[2][3][8] = NAN;
  const std::vector<at::Tensor> arms = {logits[0], logits[2]};
  const auto found = score(arms, targets_for(5, 9));
  for (std::size_t row = 0; row < 5; ++row) {
    EXPECT_TRUE(found[0][row].finite);
    EXPECT_EQ(found[1][row].finite, row != 3);
    EXPECT_EQ(found[1][row].flaw, row == 3 ? 8 : -1);
    EXPECT_EQ(std::isnan(found[1][row].flawed_logit), row == 3);
  }
}

TEST_F(CudaDivergence, NamesTheFirstLogitThatIsNotFinite) {
  at::Tensor logits = three_arms(3, 5003, 0.1);
  logits[0][1][4001] = logits[0][1][4999] = -INFINITY;
  logits[2][2][11] = logits[2][2][12] = INFINITY;
  const auto found = score({logits[0], logits[2]}, targets_for(3, 5003));
  EXPECT_TRUE(found[0][0].finite && found[1][0].finite && found[0][2].finite);
  EXPECT_FALSE(found[0][1].finite || found[1][1].finite || found[1][2].finite);
  EXPECT_EQ(found[0][1].flaw, 4001);
  EXPECT_EQ(found[0][1].flawed_logit, -INFINITY);
  EXPECT_EQ(found[1][1].flaw, -1);  // only the baseline's is not
  EXPECT_EQ(found[1][2].flaw, 11);
  EXPECT_EQ(found[1][2].flawed_logit, INFINITY);
}

TEST(DivergenceAccumulator, FinishesWhatWasBegunInOrder) {
  const at::Tensor logits = three_arms(9, 40, 0.1), targets = targets_for(9, 40);
  DivergenceAccumulator whole = accumulator(), parts = accumulator();
  whole.add(logits, targets);
  parts.finish();  // nothing begun
  const auto arms = [&](std::int64_t row, std::int64_t rows) {
    std::vector<at::Tensor> found;
    for (const std::int64_t arm : {0, 1, 2}) found.push_back(logits[arm].narrow(0, row, rows));
    return found;
  };
  parts.begin(arms(0, 4), targets.narrow(0, 0, 4));
  EXPECT_EQ(parts.rows(), 0);
  parts.begin(arms(4, 5), targets.narrow(0, 4, 5));
  EXPECT_EQ(parts.rows(), 4);
  parts.finish();
  EXPECT_EQ(parts.rows(), 9);
  for (std::size_t arm = 0; arm < 3; ++arm) EXPECT_EQ(whole.tokens(arm).kl, parts.tokens(arm).kl);
}

TEST(DivergenceAccumulator, NamesArmRowAndTokenOfALogitThatIsNotFinite) {
  DivergenceAccumulator scores = accumulator();
  scores.add(three_arms(10, 20, 0.1), targets_for(10, 20));
  at::Tensor bad = three_arms(10, 20, 0.1);
  bad[2][4][7] = INFINITY;
  EXPECT_THAT(([&] { scores.add(bad, targets_for(10, 20)); }),
              ThrowsMessage<std::runtime_error>(
                  HasSubstr("arm 'other', row 14: the logit of token 7 is inf, expected a finite number")));
  bad[0][2][19] = NAN;
  EXPECT_THAT(([&] { scores.add(bad, targets_for(10, 20)); }),
              ThrowsMessage<std::runtime_error>(HasSubstr("arm 'base', row 12: the logit of token 19")));
  EXPECT_EQ(scores.rows(), 10);  // nothing of a refused block stays
  EXPECT_EQ(scores.tokens(0).size(), 10U);
}

TEST(DivergenceAccumulator, RefusesBadInput) {
  DivergenceAccumulator scores = accumulator();
  const at::Tensor good = three_arms(4, 6, 0.1), targets = targets_for(4, 6);
  const auto add = [&](const at::Tensor& logits, const at::Tensor& ids) {
    return [=, &scores] { scores.add(logits, ids); };
  };
  using Bad = std::invalid_argument;
  EXPECT_THAT(add(good.narrow(0, 0, 2), targets), ThrowsMessage<Bad>(HasSubstr("logits of 2 arms, expected 3")));
  EXPECT_THAT(add(good.to(at::kDouble), targets), ThrowsMessage<Bad>(HasSubstr("expected float32")));
  EXPECT_THAT(add(good[0], targets), ThrowsMessage<Bad>(HasSubstr("expected [arms, rows, vocab]")));
  EXPECT_THAT(add(good.narrow(2, 0, 5), targets), ThrowsMessage<Bad>(HasSubstr("not contiguous")));
  EXPECT_THAT(add(good, targets.narrow(0, 0, 3)), ThrowsMessage<Bad>(HasSubstr("expected int64 [4]")));
  EXPECT_THAT(add(good, targets.to(at::kInt)), ThrowsMessage<Bad>(HasSubstr("expected int64 [4]")));
  EXPECT_THAT(add(good, targets + 5),
              ThrowsMessage<Bad>(HasSubstr("target 6 of row 1 is outside the vocabulary of 6")));
  EXPECT_THAT(add(good, targets - 1), ThrowsMessage<Bad>(HasSubstr("target -1 of row 0")));
  EXPECT_THROW(DivergenceAccumulator({"a"}, 1, Dtype::float32), Bad);
  EXPECT_EQ(scores.rows(), 0);
}

}  // namespace
}  // namespace replayeval::metrics
