// Sequences that come and go in the slots of one cache: rows at different positions, reuse, copies, prefilled prompts.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include "eval/model/hybrid_cache.h"
#include "eval/model/model.h"
#include "tests/eval/checkpoint/expect_error.h"
#include "tests/eval/executors/arms.h"
#include "tests/eval/model/tiny_nemotron_h.h"
#include "tests/kernels/on_device.h"

namespace replayeval {
namespace {

using Slots = std::vector<std::int32_t>;

constexpr std::int64_t vocab = 101;

at::Tensor random_ids(std::int64_t batch, std::int64_t tokens) {
  return at::randint(vocab, {batch, tokens}, at::TensorOptions().dtype(at::kLong));
}

double difference(const at::Tensor& a, const at::Tensor& b) {
  return (a - b).abs().max().item<double>() / (b.max() - b.min()).item<double>();
}

class SlotsTest : public testing::OnDevice {
 protected:
  void SetUp() override {
    OnDevice::SetUp();
    if (IsSkipped()) return;
    at::manual_seed(0);
    testing::TinyNemotronH tiny;
    model_ = load_model(tiny.open(), {GetParam(), Dtype::float32});
    arms_ = {testing::exact_arm("exact"), testing::replay_arm("replay", Dtype::float32, Dtype::bfloat16),
             testing::exact_arm("exact-bf16", Dtype::bfloat16)};
  }

  std::unique_ptr<DecodeCache> cache(std::int64_t slots, std::int64_t capacity = 64) const {
    return model_->make_cache(arms_, slots, capacity);
  }
  // [arms, B, T, vocab] on the CPU.
  at::Tensor decode(DecodeCache& cache, const at::Tensor& ids, const Slots& slots,
                    Mode mode = Mode::teacher_forced) const {
    return model_->logits(model_->forward(ids, cache, mode, nullptr, nullptr, slots)).cpu();
  }
  at::Tensor alone(const at::Tensor& ids) const { return decode(*cache(1), ids, {}); }

  std::unique_ptr<Model> model_;
  std::vector<Arm> arms_;
};

TEST_P(SlotsTest, RowsAtDifferentPositionsAreEachTheirOwnSequence) {
  const at::Tensor a = random_ids(1, 30), b = random_ids(1, 30), c = random_ids(1, 30);
  const auto shared = cache(5);
  decode(*shared, a.narrow(1, 0, 11), {3});
  decode(*shared, at::cat({b.narrow(1, 0, 4), a.narrow(1, 11, 4)}), {1, 3});
  // Three sequences at three positions, rows in another order than slots, one of them padding, block and step.
  const at::Tensor none = at::zeros({1, 6}, at::kLong);
  const at::Tensor block =
      decode(*shared, at::cat({a.narrow(1, 15, 6), none, c.narrow(1, 0, 6), b.narrow(1, 4, 6)}), {3, -1, 0, 1});
  const at::Tensor steps =
      decode(*shared, at::cat({c.narrow(1, 6, 3), a.narrow(1, 21, 3), b.narrow(1, 10, 3)}), {0, 3, 1}, Mode::stepwise);
  const at::Tensor whole_a = alone(a), whole_b = alone(b), whole_c = alone(c);
  const auto expect_row = [](const at::Tensor& found, std::int64_t row, const at::Tensor& whole, std::int64_t begin) {
    for (std::int64_t arm = 0; arm < 3; ++arm)
      EXPECT_LT(difference(found[arm][row], whole[arm][0].narrow(0, begin, found.size(2))), 1e-5) << arm;
  };
  expect_row(block, 0, whole_a, 15);
  expect_row(block, 2, whole_c, 0);
  expect_row(block, 3, whole_b, 4);
  expect_row(steps, 0, whole_c, 6);
  expect_row(steps, 1, whole_a, 21);
  expect_row(steps, 2, whole_b, 10);
  EXPECT_EQ(shared->position(0), 9);
  EXPECT_EQ(shared->position(1), 13);
  EXPECT_EQ(shared->position(2), 0);
  EXPECT_EQ(shared->position(3), 24);
}

TEST_P(SlotsTest, APaddedRowTouchesNoSlot) {
  const auto padded = cache(3);
  const at::Tensor ids = random_ids(2, 7);
  decode(*padded, ids, {-1, 1});
  const auto& touched = dynamic_cast<HybridCache&>(*padded);
  for (std::int64_t arm = 0; arm < 3; ++arm) {
    const ArmCaches& caches = const_cast<HybridCache&>(touched).of(arm);
    for (const std::int64_t slot : {0, 2}) {
      EXPECT_EQ(caches.mixers[0].state[slot].count_nonzero().item<std::int64_t>(), 0);
      EXPECT_EQ(caches.mixers[0].conv_state[slot].count_nonzero().item<std::int64_t>(), 0);
    }
    EXPECT_GT(caches.mixers[0].state[1].count_nonzero().item<std::int64_t>(), 0);
  }
}

TEST_P(SlotsTest, AReusedSlotIsAFreshOne) {
  const at::Tensor first = random_ids(3, 13), second = random_ids(1, 13), third = random_ids(1, 9);
  const auto used = cache(3);
  decode(*used, first, {});
  used->reset_slot(1);
  const at::Tensor reused = decode(*used, second, {1});
  const auto fresh = cache(3);
  EXPECT_TRUE(at::equal(reused, decode(*fresh, second, {1})));
  // Its neighbours go on undisturbed.
  const auto undisturbed = cache(3);
  decode(*undisturbed, first, {});
  EXPECT_TRUE(at::equal(decode(*used, third, {2}), decode(*undisturbed, third, {2})));
}

TEST_P(SlotsTest, ACopiedSlotGoesOnBitForBit) {
  const at::Tensor prefix = random_ids(1, 13), rest = random_ids(1, 9);
  const auto from = cache(2), to = cache(4);
  decode(*from, prefix, {1});
  decode(*to, random_ids(4, 20), {});
  to->copy_slot(2, *from, 1);
  EXPECT_EQ(to->position(2), 13);
  EXPECT_TRUE(at::equal(decode(*to, rest, {2}), decode(*from, rest, {1})));
}

TEST_P(SlotsTest, APrefilledPromptIsStoredInEveryArmsType) {
  const at::Tensor prompt = random_ids(1, 21), rest = random_ids(1, 12);
  const auto prompts = model_->make_cache({prefill_arm()}, 2, 64);
  decode(*prompts, prompt.narrow(1, 0, 20), {0});
  decode(*prompts, prompt.narrow(1, 20, 1), {0});  // a last chunk of one token
  const auto served = cache(3);
  decode(*served, random_ids(3, 7), {});
  served->store_prefilled(1, *prompts, 0);
  EXPECT_EQ(served->position(1), 21);
  const auto& prompt_caches = dynamic_cast<HybridCache&>(*prompts).of(0);
  for (std::int64_t arm = 0; arm < 3; ++arm) {
    const ArmCaches& caches = dynamic_cast<HybridCache&>(*served).of(arm);
    for (std::size_t mixer = 0; mixer < caches.mixers.size(); ++mixer) {
      const at::Tensor exact = prompt_caches.mixers[mixer].state[0], held = caches.mixers[mixer].state[1];
      EXPECT_TRUE(at::equal(held, exact.to(held.scalar_type()))) << arm;
    }
    for (const at::Tensor& cursor : caches.cursors) EXPECT_EQ(cursor[1].item<int>(), 0);
  }
  const at::Tensor decoded = alone(at::cat({prompt, rest}, 1)).narrow(2, 21, 12);
  const at::Tensor found = decode(*served, rest, {1});
  EXPECT_LT(difference(found[0], decoded[0]), 1e-5);
  EXPECT_LT(difference(found[1], decoded[1]), 2e-3);  // its ring rounds, but not over the prompt
  EXPECT_FALSE(at::equal(found[2], decoded[2]));      // the state was rounded once, not at every token
}

// Memory that nobody wrote is full of NaN while this is in scope.
class NotANumberWhereUninitialised {
 public:
  NotANumberWhereUninitialised() { at::globalContext().setDeterministicAlgorithms(true, /*warn_only=*/true); }
  ~NotANumberWhereUninitialised() { at::globalContext().setDeterministicAlgorithms(false, false); }
};

TEST_P(SlotsTest, RowsReadNothingThatNobodyWrote) {
  const NotANumberWhereUninitialised poison;
  ASSERT_TRUE(at::isnan(at::empty({64})).all().item<bool>());
  const auto own = cache(3, 32);
  decode(*own, random_ids(1, 20), {1});
  EXPECT_TRUE(at::isfinite(decode(*own, random_ids(3, 6), {})).all().item<bool>());
  EXPECT_TRUE(at::isfinite(decode(*own, random_ids(3, 2), {}, Mode::stepwise)).all().item<bool>());
}

TEST_P(SlotsTest, RefusesWhatCannotBe) {
  const auto own = cache(2, 8);
  const auto refuses = [&](const at::Tensor& ids, const Slots& slots, const std::vector<std::string>& parts) {
    testing::expect_error<std::invalid_argument>([&] { decode(*own, ids, slots); }, parts);
  };
  refuses(random_ids(1, 2), {2}, {"row 0", "slot 2", "at most 1"});
  refuses(random_ids(2, 2), {1, 1}, {"slot 1", "twice", "row 1"});
  refuses(random_ids(1, 2), {-1}, {"no row"});
  refuses(random_ids(1, 2), {0, 1}, {"[2, tokens]"});
  decode(*own, random_ids(1, 5), {1});
  refuses(random_ids(2, 4), {0, 1}, {"4 more tokens after 5", "capacity of 8"});
  const auto small = cache(1, 4);
  testing::expect_error<std::invalid_argument>([&] { small->copy_slot(0, *own, 1); }, {"5 tokens", "capacity of 4"});
  testing::expect_error<std::invalid_argument>([&] { own->copy_slot(2, *own, 1); }, {"slot 2", "exist"});
  testing::expect_error<std::invalid_argument>([&] { own->store_prefilled(0, *own, 1); }, {"3 arms", "expected one"});
  const auto other = model_->make_cache({testing::exact_arm("exact")}, 1, 8);
  testing::expect_error<std::invalid_argument>([&] { own->copy_slot(0, *other, 0); }, {"arms", "differ"});
}

REPLAYEVAL_ON_EACH_DEVICE(SlotsTest);

}  // namespace
}  // namespace replayeval
