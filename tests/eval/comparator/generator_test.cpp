// Generation under several arms: refilled slots, equal draws, prompts computed apart.
#include "eval/comparator/generation/generator.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <map>

#include "eval/comparator/generation/sampling.h"
#include "tests/eval/checkpoint/expect_error.h"
#include "tests/eval/executors/arms.h"
#include "tests/eval/model/tiny_nemotron_h.h"

namespace replayeval {
namespace {

using Sequences = std::map<std::pair<std::int64_t, std::int64_t>, std::vector<GeneratedSequence>>;

class GeneratorTest : public ::testing::Test {
 protected:
  GeneratorTest() {
    at::manual_seed(0);
    model_ = load_model(tiny_.open(), {DeviceKind::cpu, Dtype::float32});
    arms_ = {testing::exact_arm("exact"), testing::exact_arm("again"),
             testing::replay_arm("replay", Dtype::bfloat16, Dtype::bfloat16)};
    for (std::int64_t item = 0; item < 5; ++item) {
      GenerationItem next;
      next.item = item / 2;
      next.repeat = item % 2;
      for (std::int64_t t = 0; t <= 2 + next.item; ++t)
        next.prompt.push_back(static_cast<std::int32_t>((7 * next.item + 13 * t + 3) % 101));
      next.max_tokens = 6 + 3 * item;  // slots come free at different steps
      items_.push_back(next);
    }
  }

  Sequences generate(GenerationOptions options) const {
    Generator generator(*model_, arms_, nullptr, options, 40);
    Sequences sequences;
    generator.run(items_, [&](const GenerationItem& item, std::vector<GeneratedSequence> found) {
      EXPECT_TRUE(sequences.try_emplace({item.item, item.repeat}, std::move(found)).second);
    });
    EXPECT_EQ(sequences.size(), items_.size());
    return sequences;
  }

  testing::TinyNemotronH tiny_;
  std::unique_ptr<Model> model_;
  std::vector<Arm> arms_;
  std::vector<GenerationItem> items_;
};

GenerationOptions options(std::int64_t slots, double temperature) {
  GenerationOptions options;
  options.slots = slots;
  options.temperature = temperature;
  options.seed = 5;
  return options;
}

TEST_F(GeneratorTest, ARefilledSlotGivesTheTokensOfAFreshOne) {
  for (const double temperature : {0.0, 1.0})
    for (const bool prefill : {false, true}) {
      GenerationOptions many = options(8, temperature), few = options(2, temperature);
      many.prefill = few.prefill = prefill;
      const Sequences fresh = generate(many), refilled = generate(few);
      for (const auto& [item, sequences] : fresh)
        for (std::size_t arm = 0; arm < sequences.size(); ++arm)
          EXPECT_EQ(refilled.at(item)[arm].tokens, sequences[arm].tokens) << item.first << " arm " << arm;
    }
}

TEST_F(GeneratorTest, EqualArmsDrawEqualTokensAndRepeatsDoNot) {
  const Sequences drawn = generate(options(3, 1.0));
  for (const auto& [item, sequences] : drawn) {
    EXPECT_EQ(sequences[0].tokens, sequences[1].tokens);
    EXPECT_TRUE(sequences[0].truncated);  // there is no end token
  }
  const auto head = [](const GeneratedSequence& sequence) {
    return std::vector<std::int32_t>(sequence.tokens.begin(), sequence.tokens.begin() + 6);
  };
  EXPECT_NE(head(drawn.at({0, 0})[0]), head(drawn.at({0, 1})[0]));
  const Sequences greedy = generate(options(3, 0.0));
  EXPECT_EQ(head(greedy.at({0, 0})[0]), head(greedy.at({0, 1})[0]));
  EXPECT_EQ(greedy.at({0, 0})[0].tokens.size(), 6U);
  EXPECT_EQ(greedy.at({1, 1})[0].tokens.size(), 15U);
}

TEST_F(GeneratorTest, GreedyTokensAreThoseOfTheLogits) {
  const Sequences greedy = generate(options(2, 0.0));
  std::vector<std::int64_t> ids(items_[3].prompt.begin(), items_[3].prompt.end());
  for (const std::int32_t token : greedy.at({1, 1})[0].tokens) {
    const auto cache = model_->make_cache({arms_[0]}, 1, 40);
    const at::Tensor hidden = model_->forward(at::tensor(ids, at::kLong).unsqueeze(0), *cache, Mode::teacher_forced);
    EXPECT_EQ(model_->logits(hidden)[0][0][-1].argmax().item<std::int64_t>(), token);
    ids.push_back(token);
  }
}

TEST_F(GeneratorTest, AnEndTokenEndsOneArmAndTheOthersGoOn) {
  const Sequences all = generate(options(2, 1.0));
  const std::vector<std::int32_t> tokens = all.at({2, 0})[0].tokens;
  GenerationOptions ending = options(2, 1.0);
  ending.end_tokens = {tokens[4]};
  const Sequences ended = generate(ending);
  const auto first = static_cast<std::size_t>(std::find(tokens.begin(), tokens.end(), tokens[4]) - tokens.begin());
  const GeneratedSequence& cut = ended.at({2, 0})[0];
  EXPECT_EQ(cut.tokens, std::vector<std::int32_t>(tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(first)));
  EXPECT_FALSE(cut.truncated);
}

TEST_F(GeneratorTest, RefusesItemsThatCannotBe) {
  Generator generator(*model_, arms_, nullptr, options(1, 0.0), 10);
  const auto refuses = [&](const GenerationItem& item, const std::vector<std::string>& parts) {
    testing::expect_error<std::invalid_argument>([&] { generator.run({item}, {}); }, parts);
  };
  refuses({7, 0, {}, 4, {}}, {"item 7", "empty prompt"});
  refuses({8, 0, {1, 2}, 0, {}}, {"item 8", "max_tokens 0"});
  refuses({9, 0, {1, 2, 3}, 8, {}}, {"item 9", "11 tokens", "at most 10"});
  testing::expect_error<std::invalid_argument>([&] { Generator(*model_, arms_, nullptr, options(1, -1.0), 10); },
                                               {"temperature"});
}

TEST(Sampling, DrawsFollowTheProbabilities) {
  const at::Tensor logits = at::log(at::tensor({0.1, 0.2, 0.7}, at::kFloat)).unsqueeze(0).repeat({20000, 1});
  std::vector<double> uniforms;
  for (std::uint64_t i = 0; i < 20000; ++i) uniforms.push_back(uniform_of({3, i, 1, 2}));
  const at::Tensor tokens = choose_tokens(logits, 1.0, uniforms, 0.0).tokens;
  for (const auto& [token, share] : std::map<std::int64_t, double>{{0, 0.1}, {1, 0.2}, {2, 0.7}})
    EXPECT_NEAR(tokens.eq(token).to(at::kDouble).mean().item<double>(), share, 0.012);  // four standard deviations
}

TEST(Sampling, DrawsDependOnEverythingThatNamesThem) {
  const double draw = uniform_of({1, 2, 3, 4});
  EXPECT_EQ(draw, uniform_of({1, 2, 3, 4}));
  for (const Draw& other : {Draw{0, 2, 3, 4}, Draw{1, 1, 3, 4}, Draw{1, 2, 2, 4}, Draw{1, 2, 3, 3}})
    EXPECT_NE(draw, uniform_of(other));
  EXPECT_GE(draw, 0.0);
  EXPECT_LT(draw, 1.0);
}

TEST(Sampling, TiesAreToldByTheSpacingOfTheLogitsType) {
  const at::Tensor logits = at::tensor({1.0F, 1.004F, 0.0F}, at::kFloat).unsqueeze(0);
  EXPECT_TRUE(choose_tokens(logits, 0.0, {0.0}, 0x1p-7).ties[0].item<bool>());
  EXPECT_FALSE(choose_tokens(logits, 0.0, {0.0}, 0x1p-23).ties[0].item<bool>());
  EXPECT_THROW(choose_tokens(at::full({1, 3}, NAN), 0.0, {0.0}, 0.0), std::runtime_error);
}

}  // namespace
}  // namespace replayeval
