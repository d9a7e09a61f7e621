// Generation under several arms: refilled slots, equal draws, prompts computed apart.
#include "eval/comparator/generation/generator.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

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

  Sequences generate(const GenerationOptions& options, double temperature) const {
    Generator generator(*model_, arms_, nullptr, options, 40);
    Sequences sequences;
    std::vector<GenerationItem> items = items_;
    for (GenerationItem& item : items) item.sampling.temperature = temperature;
    Generator::Events events;
    events.done = [&](const GenerationItem& item, std::vector<GeneratedSequence> found) {
      const bool fresh = sequences.try_emplace({item.item, item.repeat}, std::move(found)).second;
      EXPECT_TRUE(fresh);
    };
    std::int64_t served = 0;
    events.stepped = [&](std::int64_t items_in_slots) { served += items_in_slots; };
    generator.run(items, events);
    EXPECT_EQ(sequences.size(), items_.size());
    EXPECT_EQ(generator.costs().decoded_tokens, served);
    return sequences;
  }

  testing::TinyNemotronH tiny_;
  std::unique_ptr<Model> model_;
  std::vector<Arm> arms_;
  std::vector<GenerationItem> items_;
};

GenerationOptions options(std::int64_t slots) {
  GenerationOptions options;
  options.slots = slots;
  options.seed = 5;
  return options;
}

TEST_F(GeneratorTest, ARefilledSlotGivesTheTokensOfAFreshOne) {
  for (const double temperature : {0.0, 1.0})
    for (const bool prefill : {false, true}) {
      GenerationOptions many = options(8), few = options(2);
      many.prefill = few.prefill = prefill;
      const Sequences fresh = generate(many, temperature), refilled = generate(few, temperature);
      for (const auto& [item, sequences] : fresh)
        for (std::size_t arm = 0; arm < sequences.size(); ++arm)
          EXPECT_EQ(refilled.at(item)[arm].tokens, sequences[arm].tokens) << item.first << " arm " << arm;
    }
}

TEST_F(GeneratorTest, EqualArmsDrawEqualTokensAndRepeatsDoNot) {
  const Sequences drawn = generate(options(3), 1.0);
  for (const auto& [item, sequences] : drawn) {
    EXPECT_EQ(sequences[0].tokens, sequences[1].tokens);
    EXPECT_TRUE(sequences[0].truncated());  // there is no end token
  }
  const auto head = [](const GeneratedSequence& sequence) {
    return std::vector<std::int32_t>(sequence.tokens.begin(), sequence.tokens.begin() + 6);
  };
  EXPECT_NE(head(drawn.at({0, 0})[0]), head(drawn.at({0, 1})[0]));
  const Sequences greedy = generate(options(3), 0.0);
  EXPECT_EQ(head(greedy.at({0, 0})[0]), head(greedy.at({0, 1})[0]));
  EXPECT_EQ(greedy.at({0, 0})[0].tokens.size(), 6U);
  EXPECT_EQ(greedy.at({1, 1})[0].tokens.size(), 15U);
}

TEST_F(GeneratorTest, GreedyTokensAreThoseOfTheLogits) {
  const Sequences greedy = generate(options(2), 0.0);
  std::vector<std::int64_t> ids(items_[3].prompt.begin(), items_[3].prompt.end());
  for (const std::int32_t token : greedy.at({1, 1})[0].tokens) {
    const auto cache = model_->make_cache({arms_[0]}, 1, 40);
    const at::Tensor hidden = model_->forward(at::tensor(ids, at::kLong).unsqueeze(0), *cache, Mode::teacher_forced);
    EXPECT_EQ(model_->logits(hidden)[0][0][-1].argmax().item<std::int64_t>(), token);
    ids.push_back(token);
  }
}

TEST_F(GeneratorTest, AnEndTokenEndsOneArmAndTheOthersGoOn) {
  const Sequences all = generate(options(2), 1.0);
  const std::vector<std::int32_t> tokens = all.at({2, 0})[0].tokens;
  GenerationOptions ending = options(2);
  ending.end_tokens = {tokens[4]};
  const Sequences ended = generate(ending, 1.0);
  const auto first = static_cast<std::size_t>(std::find(tokens.begin(), tokens.end(), tokens[4]) - tokens.begin());
  const GeneratedSequence& cut = ended.at({2, 0})[0];
  EXPECT_EQ(cut.tokens, std::vector<std::int32_t>(tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(first)));
  EXPECT_EQ(cut.ending, Ending::end_token);
  EXPECT_EQ(cut.ties.size(), cut.tokens.size() + 1);
}

TEST_F(GeneratorTest, RefusesItemsThatCannotBe) {
  Generator generator(*model_, arms_, nullptr, options(1), 10);
  const auto refuses = [&](const GenerationItem& item, const std::vector<std::string>& parts) {
    testing::expect_error<std::invalid_argument>([&] { generator.run({item}, {}); }, parts);
  };
  refuses({7, 0, {}, 4, {}, {}}, {"item 7", "empty prompt"});
  refuses({8, 0, {1, 2}, 0, {}, {}}, {"item 8", "max_tokens 0"});
  refuses({9, 0, {1, 2, 3}, 8, {}, {}}, {"item 9", "11 tokens", "at most 10"});
  refuses({10, 0, {1, 2, 3}, 2, {}, {-1.0}}, {"item 10", "temperature is -1"});
  refuses({11, 0, {1, 2, 3}, 2, {}, {NAN}}, {"item 11", "temperature is nan", "finite"});
  refuses({13, 0, {1, 2, 3}, 2, {}, {1.0, -1}}, {"item 13", "top_k is -1"});
  refuses({14, 0, {1, 2, 3}, 2, {}, {1.0, 0, 0.0}}, {"item 14", "top_p is 0"});
  refuses({12, 0, {1, 2, 3}, 2, {}, {INFINITY}}, {"item 12", "temperature is inf"});
}

TEST_F(GeneratorTest, TokensAreToldAsTheyCome) {
  Generator generator(*model_, arms_, nullptr, options(2), 40);
  std::map<std::tuple<std::int64_t, std::int64_t, std::size_t>, std::vector<std::int32_t>> told;
  Sequences sequences;
  Generator::Events events;
  events.done = [&](const GenerationItem& item, std::vector<GeneratedSequence> found) {
    sequences[{item.item, item.repeat}] = std::move(found);
  };
  events.token = [&](const GenerationItem& item, std::size_t arm, std::int32_t token) {
    told[{item.item, item.repeat, arm}].push_back(token);
  };
  generator.run(items_, events);
  std::int64_t generated = 0;
  for (const auto& [item, arms] : sequences)
    for (std::size_t arm = 0; arm < arms.size(); ++arm) {
      EXPECT_EQ((told[{item.first, item.second, arm}]), arms[arm].tokens);
      generated += static_cast<std::int64_t>(arms[arm].tokens.size());
    }
  EXPECT_EQ(generator.costs().generated_tokens, generated);
}

TEST_F(GeneratorTest, NamesWhereLogitsAreNotFinite) {
  testing::TinyNemotronH spoilt;
  testing::StoredTensor& head = spoilt.tensors.at("lm_head.weight");
  const auto rows = static_cast<std::size_t>(head.shape[0] * head.shape[1]);
  std::vector<float> large(rows, 3e38F);
  head = testing::float_tensor(head.shape, large);
  const auto model = load_model(spoilt.open(), {DeviceKind::cpu, Dtype::float32});
  Generator generator(*model, arms_, nullptr, options(4), 40);
  testing::expect_error<std::runtime_error>(
      [&] {
        generator.run({items_[3]}, {.done = [](const GenerationItem&, const std::vector<GeneratedSequence>&) {}});
      },
      {"arm 'exact'", "item 1", "not finite after 0 generated tokens"});
}

// A run that an event ended leaves nothing behind in the slots.
TEST_F(GeneratorTest, ARunAfterAnInterruptedOneIsAFreshOne) {
  Generator generator(*model_, arms_, nullptr, options(2), 40);
  std::int64_t steps = 0;
  Generator::Events events;
  events.stepped = [&](std::int64_t) {
    if (++steps == 3) throw std::runtime_error("stop");
  };
  EXPECT_THROW(generator.run(items_, events), std::runtime_error);
  Sequences again;
  events.stepped = {};
  events.done = [&](const GenerationItem& item, std::vector<GeneratedSequence> found) {
    again[{item.item, item.repeat}] = std::move(found);
  };
  generator.run(items_, events);
  const Sequences fresh = generate(options(2), 0.0);
  ASSERT_EQ(again.size(), fresh.size());
  for (const auto& [item, arms] : fresh)
    for (std::size_t arm = 0; arm < arms.size(); ++arm) EXPECT_EQ(again.at(item)[arm].tokens, arms[arm].tokens);
}

// With as many slots, a sequence is the same to the bit, whichever slot it gets, when, and beside whom.
void expect_order_changes_nothing(const Model& model, const std::vector<Arm>& arms, std::vector<GenerationItem> items) {
  const auto generate = [&](const std::vector<GenerationItem>& order, bool prefill) {
    GenerationOptions options;
    options.slots = 3;
    options.prefill = prefill;
    Generator generator(model, arms, nullptr, options, 40);
    Sequences sequences;
    Generator::Events events;
    events.done = [&](const GenerationItem& item, std::vector<GeneratedSequence> found) {
      sequences[{item.item, item.repeat}] = std::move(found);
    };
    generator.run(order, events);
    return sequences;
  };
  for (const bool prefill : {false, true})
    for (const double temperature : {0.0, 1.0}) {
      for (GenerationItem& item : items) item.sampling.temperature = temperature;
      const Sequences forward = generate(items, prefill);
      const Sequences backward = generate({items.rbegin(), items.rend()}, prefill);
      ASSERT_EQ(forward.size(), items.size());
      for (const auto& [item, sequences] : forward) {
        EXPECT_EQ(sequences[0].tokens, sequences[1].tokens);  // the A/A pair
        for (std::size_t arm = 0; arm < sequences.size(); ++arm)
          EXPECT_EQ(backward.at(item)[arm].tokens, sequences[arm].tokens) << item.first << " arm " << arm;
      }
    }
}

TEST_F(GeneratorTest, TheOrderOfItemsChangesNothing) { expect_order_changes_nothing(*model_, arms_, items_); }

TEST_F(GeneratorTest, TheOrderOfItemsChangesNothingOnCuda) {
  if (!built_with_cuda() || !at::Context::hasCUDA()) GTEST_SKIP() << "there is no GPU";
  for (const Dtype compute : {Dtype::float32, Dtype::bfloat16})
    expect_order_changes_nothing(*load_model(tiny_.open(), {DeviceKind::cuda, compute}), arms_, items_);
}

ChosenTokens draw(const at::Tensor& logits, const std::vector<double>& uniforms) {
  std::vector<Choice> choices;
  for (const double uniform : uniforms) choices.push_back({{1.0}, uniform});
  return choose_tokens(logits, choices, 0.0);
}

TEST(Sampling, DrawsFollowTheProbabilities) {
  const at::Tensor logits = at::log(at::tensor({0.1, 0.2, 0.7}, at::kFloat)).unsqueeze(0).repeat({20000, 1});
  std::vector<double> uniforms;
  for (std::uint64_t i = 0; i < 20000; ++i) uniforms.push_back(uniform_of({3, i, 1, 2}));
  const std::vector<std::int32_t> tokens = draw(logits, uniforms).tokens;
  for (const auto& [token, share] : std::map<std::int32_t, double>{{0, 0.1}, {1, 0.2}, {2, 0.7}})
    EXPECT_NEAR(static_cast<double>(std::count(tokens.begin(), tokens.end(), token)) / 20000.0, share,
                0.012);  // four standard deviations
}

TEST(Sampling, ATemperatureSharpensAndTheEdgesOfTheUniformAreTokens) {
  const at::Tensor logits = at::tensor({1.0F, 3.0F, 2.0F}, at::kFloat).unsqueeze(0).repeat({3, 1});
  const double almost_one = 1.0 - 0x1p-53;
  EXPECT_EQ(draw(logits, {0.0, 0.5, almost_one}).tokens, (std::vector<std::int32_t>{0, 1, 2}));
  // exp(-20): nothing is left of the others.
  EXPECT_EQ(choose_tokens(logits, {{{0.05}, 0.001}, {{0.05}, 0.5}, {}}, 0.0).tokens,
            (std::vector<std::int32_t>{1, 1, 1}));
}

// Probabilities 0.4, 0.3, 0.2, 0.1 of the ids 2, 0, 3, 1.
std::vector<std::int32_t> limited(const at::Device& device, std::int64_t top_k, double top_p,
                                  const std::vector<double>& uniforms) {
  const at::Tensor logits = at::log(at::tensor({0.3, 0.1, 0.4, 0.2}, at::kFloat)).to(device);
  std::vector<Choice> choices;
  for (const double uniform : uniforms) choices.push_back({{1.0, top_k, top_p}, uniform});
  const auto rows = static_cast<std::int64_t>(uniforms.size());
  return choose_tokens(logits.unsqueeze(0).repeat({rows, 1}), choices, 0.0).tokens;
}

void expect_limits(const at::Device& device) {
  using Ids = std::vector<std::int32_t>;
  const double almost_one = 1.0 - 0x1p-53;
  EXPECT_EQ(limited(device, 2, 1.0, {0.0, 0.57, 0.58, almost_one}), (Ids{2, 2, 0, 0}));  // 0.4 of 0.7
  EXPECT_EQ(limited(device, 9, 1.0, {0.39, 0.41, 0.71, 0.91}), (Ids{2, 0, 3, 1}));
  EXPECT_EQ(limited(device, 0, 0.39, {0.0, almost_one}), (Ids{2, 2}));
  EXPECT_EQ(limited(device, 0, 0.41, {0.57, 0.58}), (Ids{2, 0}));  // what passes the share is taken whole
  EXPECT_EQ(limited(device, 0, 0.71, {0.44, 0.45, 0.78, almost_one}), (Ids{2, 0, 3, 3}));  // 0.4, 0.3 and 0.2 of 0.9
  EXPECT_EQ(limited(device, 3, 0.5, {0.57, 0.58}), (Ids{2, 0}));  // of the three: 0.44, 0.33, 0.22
  EXPECT_EQ(limited(device, 0, 1e-300, {almost_one}), (Ids{2}));
}

TEST(Sampling, TopKAndTopPLeaveTheLikeliest) { expect_limits(at::kCPU); }

TEST(Sampling, TopKAndTopPLeaveTheLikeliestOnCuda) {
  if (!at::Context::hasCUDA()) GTEST_SKIP() << "there is no GPU";
  expect_limits(at::kCUDA);
}

// What a row gets does not depend on where it stands or on what stands beside it.
void expect_rows_by_themselves(const at::Device& device) {
  at::manual_seed(7);
  const at::Tensor logits = (at::randn({37, 1001}, at::kFloat) * 4).to(device);
  std::vector<Choice> choices;
  for (std::uint64_t row = 0; row < 37; ++row)
    choices.push_back(
        {{row % 3 == 0 ? 0.0 : 0.5 * static_cast<double>(row % 4 + 1), row % 5 == 0 ? 40 : 0, row % 7 == 0 ? 0.8 : 1.0},
         uniform_of({1, row, 0, 0})});
  const ChosenTokens together = choose_tokens(logits, choices, 0x1p-7);
  for (std::int64_t row = 0; row < 37; ++row) {
    const auto index = static_cast<std::size_t>(row);
    const ChosenTokens alone = choose_tokens(logits.narrow(0, row, 1), {choices[index]}, 0x1p-7);
    EXPECT_EQ(alone.tokens[0], together.tokens[index]) << row;
    EXPECT_EQ(alone.ties[0], together.ties[index]) << row;
  }
}

TEST(Sampling, ARowIsByItself) { expect_rows_by_themselves(at::kCPU); }

TEST(Sampling, ARowIsByItselfOnCuda) {
  if (!at::Context::hasCUDA()) GTEST_SKIP() << "there is no GPU";
  expect_rows_by_themselves(at::kCUDA);
}

TEST(Sampling, DrawsOnCudaAreThoseOfTheCpu) {
  if (!at::Context::hasCUDA()) GTEST_SKIP() << "there is no GPU";
  at::manual_seed(8);
  const at::Tensor logits = at::randn({64, 4096}, at::kFloat) * 3;
  std::vector<double> uniforms;
  for (std::uint64_t i = 0; i < 64; ++i) uniforms.push_back(uniform_of({9, i, 0, 0}));
  EXPECT_EQ(draw(logits.to(at::kCUDA), uniforms).tokens, draw(logits, uniforms).tokens);
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
  EXPECT_TRUE(choose_tokens(logits, {{}}, 0x1p-7).ties[0]);
  EXPECT_FALSE(choose_tokens(logits, {{}}, 0x1p-23).ties[0]);
  EXPECT_FALSE(choose_tokens(logits, {{{1.0}, 0.5}}, 0x1p-7).ties[0]);  // drawn
}

TEST(Sampling, TheLowestOfEqualLogitsIsTaken) {
  const at::Tensor logits = at::tensor({0.0F, 2.0F, 1.0F, 2.0F}, at::kFloat).unsqueeze(0);
  const ChosenTokens chosen = choose_tokens(logits, {{}}, 0x1p-23);
  EXPECT_EQ(chosen.tokens[0], 1);
  EXPECT_TRUE(chosen.ties[0]);
}

TEST(Sampling, RefusesWhatHasNoAnswer) {
  EXPECT_EQ(choose_tokens(at::tensor({1.0F, 2.0F, NAN, 0.0F}, at::kFloat).view({2, 2}), {{}, {}}, 0.0).not_finite, 1U);
  EXPECT_EQ(choose_tokens(at::tensor({INFINITY, 2.0F}, at::kFloat).view({1, 2}), {{{1.0}, 0.5}}, 0.0).not_finite, 0U);
  EXPECT_FALSE(choose_tokens(at::tensor({1.0F, 2.0F}, at::kFloat).view({1, 2}), {{}}, 0.0).not_finite);
  testing::expect_error<std::invalid_argument>([] { choose_tokens(at::zeros({2, 3}), {{}}, 0.0); }, {"1 for 2 rows"});
}

}  // namespace
}  // namespace replayeval
