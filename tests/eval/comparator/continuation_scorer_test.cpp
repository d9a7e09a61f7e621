// Log-likelihoods of continuations, against log-softmax over the logits of each sequence decoded by itself.
#include "eval/comparator/tasks/continuation_scorer.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <stdexcept>

#include "tests/eval/executors/arms.h"
#include "tests/eval/model/tiny_nemotron_h.h"

namespace replayeval {
namespace {

using ::testing::HasSubstr;

constexpr std::int64_t vocab = 101;

class ContinuationScorerTest : public ::testing::Test {
 protected:
  ContinuationScorerTest() {
    model_ = load_model(tiny_.open(), {DeviceKind::cpu, Dtype::float32});
    arms_ = {testing::exact_arm("exact"), testing::exact_arm("again"),
             testing::replay_arm("replay", Dtype::float32, Dtype::float32),
             testing::exact_arm("bfloat16", Dtype::bfloat16)};
  }

  Continuation request(std::size_t tokens, std::int64_t scored) {
    Continuation made{{}, scored};
    for (std::size_t i = 0; i < tokens; ++i) made.tokens.push_back(static_cast<std::int32_t>(random_() % vocab));
    return made;
  }

  std::vector<std::vector<ContinuationScore>> score(const std::vector<Continuation>& requests,
                                                    const ScorerOptions& options = {}) const {
    return ContinuationScorer(*model_, arms_, options).run(requests, [](std::int64_t) {});
  }

  // One sequence under one arm, in one call.
  ContinuationScore direct(const Continuation& request, const Arm& arm) const {
    const std::vector<std::int64_t> ids(request.tokens.begin(), request.tokens.end());
    const auto inputs = static_cast<std::int64_t>(ids.size()) - 1;
    const auto cache = model_->make_cache({arm}, 1, inputs);
    const at::Tensor all = at::tensor(ids, at::kLong).view({1, -1});
    const at::Tensor logits =
        model_->logits(model_->forward(all.narrow(1, 0, inputs), *cache, Mode::stepwise))[0][0].to(at::kDouble);
    ContinuationScore score{0.0, true, {}};
    for (std::int64_t t = inputs - request.scored; t < inputs; ++t) {
      const at::Tensor log_probs = at::log_softmax(logits[t], 0);
      const double log_prob = log_probs[ids[static_cast<std::size_t>(t) + 1]].item<double>();
      score.log_likelihood += log_prob;
      score.log_probs.push_back(static_cast<float>(log_prob));
      score.greedy = score.greedy && log_probs.max().item<double>() == log_prob;
    }
    return score;
  }

  void expect_direct(const std::vector<Continuation>& requests, const ScorerOptions& options) {
    const auto scores = score(requests, options);
    ASSERT_EQ(scores.size(), requests.size());
    for (std::size_t i = 0; i < requests.size(); ++i) {
      ASSERT_EQ(scores[i].size(), arms_.size());
      for (std::size_t arm = 0; arm < arms_.size(); ++arm) {
        const ContinuationScore expected = direct(requests[i], arms_[arm]);
        EXPECT_EQ(scores[i][arm].greedy, expected.greedy) << i << " " << arms_[arm].name;
        ASSERT_EQ(scores[i][arm].log_probs.size(), expected.log_probs.size());
        for (std::size_t t = 0; t < expected.log_probs.size(); ++t)
          EXPECT_NEAR(scores[i][arm].log_probs[t], expected.log_probs[t], 1e-4) << i << " " << t;
        double sum = 0.0;
        for (const float log_prob : scores[i][arm].log_probs) sum += static_cast<double>(log_prob);
        EXPECT_EQ(scores[i][arm].log_likelihood, sum) << i;
      }
    }
  }

  // Lengths that fill no batch and no block evenly; contexts of one token and continuations of one.
  std::vector<Continuation> mixed() {
    std::vector<Continuation> requests;
    for (const auto& [tokens, scored] : std::vector<std::pair<std::size_t, std::int64_t>>{
             {2, 1}, {9, 8}, {40, 3}, {17, 1}, {33, 32}, {40, 1}, {5, 2}, {28, 9}})
      requests.push_back(request(tokens, scored));
    return requests;
  }

  // The likeliest continuation, by the exact arm.
  Continuation greedy(std::size_t context, std::int64_t scored) const {
    Continuation made{{}, scored};
    for (std::size_t i = 0; i < context; ++i) made.tokens.push_back(static_cast<std::int32_t>(7 * i % vocab));
    const auto cache = model_->make_cache({arms_[0]}, 1, 64);
    at::Tensor next = at::tensor(std::vector<std::int64_t>(made.tokens.begin(), made.tokens.end()), at::kLong);
    for (std::int64_t t = 0; t < scored; ++t) {
      const at::Tensor hidden = model_->forward(next.view({1, -1}), *cache, Mode::stepwise);
      next = model_->logits(hidden)[0][0][-1].argmax().view({1});
      made.tokens.push_back(static_cast<std::int32_t>(next.item<std::int64_t>()));
    }
    return made;
  }

  testing::TinyNemotronH tiny_;
  std::mt19937 random_{5};
  std::unique_ptr<Model> model_;
  std::vector<Arm> arms_;
};

TEST_F(ContinuationScorerTest, AddsUpTheLogSoftmaxOfEachSequence) {
  const std::vector<Continuation> requests = mixed();
  expect_direct(requests, {Mode::teacher_forced, false, 16, 32});
  expect_direct(requests, {Mode::stepwise, false, 7, 200});
}

TEST_F(ContinuationScorerTest, GreedyMeansTheLikeliestTokenEverywhere) {
  const Continuation likeliest = greedy(6, 4);
  Continuation other = likeliest;
  other.tokens[7] = (other.tokens[7] + 1) % static_cast<std::int32_t>(vocab);  // neither the first nor the last
  const auto scores = score({likeliest, other});
  EXPECT_TRUE(scores[0][0].greedy);
  EXPECT_FALSE(scores[1][0].greedy);
  EXPECT_LT(scores[1][0].log_likelihood, scores[0][0].log_likelihood);
}

TEST_F(ContinuationScorerTest, EqualRequestsAndEqualArmsHaveEqualBits) {
  std::vector<Continuation> requests = mixed();
  const std::size_t count = requests.size();
  for (std::size_t i = 0; i < count; ++i) requests.push_back(requests[count - 1 - i]);
  for (const bool prefill : {false, true}) {
    const auto scores = score(requests, {Mode::teacher_forced, prefill, 16, 64});
    for (std::size_t i = 0; i < count; ++i) {
      for (std::size_t arm = 0; arm < arms_.size(); ++arm)
        EXPECT_EQ(scores[i][arm].log_probs, scores[2 * count - 1 - i][arm].log_probs) << i;
      EXPECT_EQ(scores[i][0].log_probs, scores[i][1].log_probs) << i;  // A/A
      EXPECT_EQ(scores[i][0].log_likelihood, scores[i][1].log_likelihood) << i;
    }
  }
}

// The same tokens cut elsewhere are another request, though model and logits are the same.
TEST_F(ContinuationScorerTest, TheCutDecidesWhatIsScored) {
  const Continuation two = request(12, 2);
  Continuation five = two;
  five.scored = 5;
  const auto scores = score({two, five});
  EXPECT_EQ(scores[0][0].log_probs.size(), 2U);
  EXPECT_EQ(scores[1][0].log_probs.size(), 5U);
  EXPECT_NEAR(scores[1][0].log_probs[4], scores[0][0].log_probs[1], 1e-5);
  EXPECT_NE(scores[0][0].log_likelihood, scores[1][0].log_likelihood);
}

TEST_F(ContinuationScorerTest, PaddingDoesNotMatter) {
  const Continuation short_one = request(5, 2);
  for (const bool prefill : {false, true}) {
    const auto alone = score({short_one}, {Mode::teacher_forced, prefill, 256, 4096});
    const auto padded = score({request(60, 20), short_one, request(31, 1)}, {Mode::teacher_forced, prefill, 8, 4096});
    for (std::size_t arm = 0; arm < arms_.size(); ++arm)
      EXPECT_NEAR(padded[1][arm].log_likelihood, alone[0][arm].log_likelihood, 1e-4) << arms_[arm].name;
  }
}

// The exact float32 arm continues from the very state; arms with other storage from that state, rounded once.
TEST_F(ContinuationScorerTest, PromptsMayBeComputedApart) {
  const std::vector<Continuation> requests = mixed();
  const auto decoded = score(requests, {Mode::teacher_forced, false, 16, 64});
  const auto prefilled = score(requests, {Mode::teacher_forced, true, 16, 64});
  bool rounded_apart = false;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    for (const std::size_t arm : {0, 1, 2})
      EXPECT_NEAR(prefilled[i][arm].log_likelihood, decoded[i][arm].log_likelihood, 1e-4) << i;
    rounded_apart = rounded_apart || prefilled[i][3].log_likelihood != decoded[i][3].log_likelihood;
  }
  EXPECT_TRUE(rounded_apart);
}

// The choices of a question come apart and in any order; the score of each is that of the question asked by itself.
TEST_F(ContinuationScorerTest, ChoicesOfOneContextShareItsPrompt) {
  std::vector<Continuation> requests;
  const std::vector<Continuation> contexts = {request(21, 0), request(21, 0), request(9, 0)};
  for (const std::int64_t scored : {4, 1, 7})
    for (const Continuation& context : contexts) {
      requests.push_back(request(static_cast<std::size_t>(scored), scored));
      requests.back().tokens.insert(requests.back().tokens.begin(), context.tokens.begin(), context.tokens.end());
    }
  const auto together = score(requests, {Mode::teacher_forced, true, 16, 64});
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const auto alone = score({requests[i]}, {Mode::teacher_forced, true, 16, 64});
    for (std::size_t arm = 0; arm < arms_.size(); ++arm)
      EXPECT_NEAR(together[i][arm].log_likelihood, alone[0][arm].log_likelihood, 1e-5) << i << " " << arms_[arm].name;
  }
}

TEST_F(ContinuationScorerTest, CountsWhatWentThroughTheArms) {
  const std::vector<Continuation> requests = {request(10, 3), request(4, 1)};
  std::int64_t told = 0;
  const auto tokens = [&](bool prefill) {
    ContinuationScorer scorer(*model_, arms_, {Mode::teacher_forced, prefill, 16, 64});
    scorer.run(requests, [&](std::int64_t done) { told += done; });
    EXPECT_EQ(scorer.costs().storage_counts.size(), arms_.size());
    EXPECT_EQ(scorer.costs().storage_counts[0].size(), model_->mixers().size());
    return scorer.costs().decoded_tokens;
  };
  EXPECT_EQ(tokens(false), 9 + 3);
  EXPECT_EQ(tokens(true), 3 + 1);  // the last token of a context predicts the first of its continuation
  EXPECT_EQ(told, 4);
}

std::string message_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "nothing was thrown";
}

TEST_F(ContinuationScorerTest, RefusesWhatCannotBeScored) {
  const Continuation good = request(5, 2);
  EXPECT_EQ(message_of([&] { score({good, {{3}, 1}}); }), "request 1: 1 tokens; expected a context and a continuation");
  EXPECT_THAT(message_of([&] { score({request(4, 0)}); }), HasSubstr("request 0: 0 tokens to score of 4"));
  EXPECT_THAT(message_of([&] { score({request(4, 4)}); }), HasSubstr("request 0: 4 tokens to score of 4"));
  EXPECT_NO_THROW(score({request(4, 3)}));
  const auto longest = static_cast<std::size_t>(model_->max_positions());
  EXPECT_THAT(message_of([&] { score({request(longest + 2, 1)}); }), HasSubstr("positions"));
  EXPECT_THAT(message_of([&] { score({{{1, static_cast<std::int32_t>(vocab)}, 1}}); }), HasSubstr("101"));
  EXPECT_THROW(score({good}, {Mode::teacher_forced, false, 0, 64}), std::invalid_argument);
  EXPECT_THROW(score({good}, {Mode::teacher_forced, false, 16, 0}), std::invalid_argument);
}

}  // namespace
}  // namespace replayeval
