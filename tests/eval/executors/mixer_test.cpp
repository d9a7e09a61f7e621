// What every family's mixer promises.
#include "eval/executors/mixer.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <numeric>
#include <stdexcept>

#include "eval/executors/device.h"
#include "tests/eval/checkpoint/expect_error.h"
#include "tests/eval/executors/arms.h"
#include "tests/eval/executors/mixer_runs.h"
#include "tests/kernels/on_device.h"

namespace replayeval {
namespace {

using testing::MixerOutputs;
using testing::random_projected;
using testing::run_in_pieces;

constexpr std::int64_t batch = 3, tokens = 23;

void expect_same_bits(const MixerOutputs& a, const MixerOutputs& b, const std::string& what) {
  EXPECT_TRUE(at::equal(a.result.conv, b.result.conv)) << what;
  EXPECT_TRUE(at::equal(a.result.y, b.result.y)) << what;
  EXPECT_TRUE(at::equal(a.result.out, b.result.out)) << what;
  EXPECT_TRUE(at::equal(a.state, b.state)) << what;
}

class MixerTest : public testing::OnDevice {
 protected:
  void SetUp() override {
    OnDevice::SetUp();
    if (IsSkipped()) return;
    at::manual_seed(0);
    const at::Device device = torch_device(GetParam());
    mixers_.push_back(testing::random_mamba2(device));
    for (const auto family : {delta_rule::Family::gated_delta, delta_rule::Family::kda})
      mixers_.push_back(testing::random_delta_rule(family, device));
  }

  std::vector<std::unique_ptr<Mixer>> mixers_;
};

TEST_P(MixerTest, ModesAndCutsGiveTheSameBits) {
  for (const auto& mixer : mixers_)
    for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
      const at::Tensor projected = random_projected(*mixer, batch, tokens, type);
      for (const Arm& arm : testing::every_kind_of_arm(mixer->family())) {
        const std::string what = mixer->family() + " " + arm.name;
        const MixerOutputs whole = run_in_pieces(*mixer, arm, projected, {tokens});
        EXPECT_TRUE(at::isfinite(whole.result.out).all().item<bool>()) << what;
        const std::vector<std::int64_t> steps(static_cast<std::size_t>(tokens), 1);
        expect_same_bits(whole, run_in_pieces(*mixer, arm, projected, steps), what + ", stepwise");
        expect_same_bits(whole, run_in_pieces(*mixer, arm, projected, {4, 1, 9, 9}), what + ", cut");
      }
    }
}

TEST_P(MixerTest, ReplayAgreesWithExactWhenNothingIsRounded) {
  for (const auto& mixer : mixers_) {
    const at::Tensor projected = random_projected(*mixer, batch, tokens, at::kFloat);
    const MixerOutputs exact = run_in_pieces(*mixer, testing::exact_arm("exact"), projected, {tokens});
    for (const RingForm form : testing::ring_forms(mixer->family())) {
      Arm arm = testing::replay_arm("replay", Dtype::float32, Dtype::float32);
      arm.ring_form = form;
      const MixerOutputs replay = run_in_pieces(*mixer, arm, projected, {tokens});
      EXPECT_TRUE(at::allclose(exact.result.out, replay.result.out, 1e-4, 1e-5)) << mixer->family();
      EXPECT_TRUE(at::allclose(exact.state, replay.state, 1e-4, 1e-5)) << mixer->family();
      EXPECT_FALSE(at::equal(exact.state, replay.state));  // else the arm would not have been run as asked
    }
  }
}

// The float64 recurrence on what the mixer's own saw.
TEST_P(MixerTest, GoldAgreesWithTheFloat32Recurrence) {
  for (const auto& mixer : mixers_) {
    const at::Tensor projected = random_projected(*mixer, 1, tokens, at::kFloat);
    const MixerOutputs ours = run_in_pieces(*mixer, testing::exact_arm("exact"), projected, {tokens});
    const std::unique_ptr<GoldRecurrence> gold = mixer->gold();
    gold->decode(ours.result.conv.narrow(1, 0, 5), projected.narrow(1, 0, 5));
    const std::unique_ptr<GoldRecurrence> early = gold->clone();
    gold->decode(ours.result.conv.narrow(1, 5, tokens - 5), projected.narrow(1, 5, tokens - 5));
    const auto as_tensor = [](const std::vector<double>& values, const at::Tensor& like) {
      return at::tensor(values, at::kDouble).view(like.sizes());
    };
    const at::Tensor state = ours.state.select(0, 0).to(at::kCPU, at::kDouble);
    const at::Tensor y = ours.result.y.select(0, 0).select(0, -1).to(at::kCPU, at::kDouble);
    EXPECT_TRUE(at::allclose(as_tensor(gold->state(), state), state, 1e-4, 1e-5)) << mixer->family();
    EXPECT_TRUE(at::allclose(as_tensor(gold->last_output(), y), y, 1e-4, 1e-5)) << mixer->family();
    EXPECT_FALSE(at::allclose(as_tensor(early->state(), state), state, 1e-4, 1e-5)) << "a clone moved along";
  }
}

TEST_P(MixerTest, SlotsNameTheRowsOfTheCaches) {
  for (const auto& mixer : mixers_) {
    const at::Tensor projected = random_projected(*mixer, 2, tokens, at::kFloat);
    const at::Tensor slots = at::tensor({3, 1}, at::kInt).to(mixer->device());
    for (const Arm& arm :
         {testing::exact_arm("exact"), testing::replay_arm("replay", Dtype::float32, Dtype::bfloat16)}) {
      MixerCache mapped = mixer->make_cache(arm, 4, at::kFloat);
      MixerCache plain = mixer->make_cache(arm, 2, at::kFloat);
      const MixerResult a = mixer->run(arm, mapped, projected, slots);
      const MixerResult b = mixer->run(arm, plain, projected);
      advance_cursor(arm, mapped.cursor, 2, tokens, slots);
      advance_cursor(arm, plain.cursor, 2, tokens);
      EXPECT_TRUE(at::equal(a.out, b.out)) << arm.name;
      EXPECT_TRUE(at::equal(mixer->present_state(arm, mapped, 2, slots), mixer->present_state(arm, plain, 2)));
      EXPECT_EQ(mapped.state.select(0, 0).count_nonzero().item<std::int64_t>(), 0);
      EXPECT_EQ(mapped.conv_state.select(0, 2).count_nonzero().item<std::int64_t>(), 0);
      if (arm.executor == Executor::exact) continue;
      const at::Tensor cursor = mapped.cursor.cpu();
      const std::vector<std::int32_t> found(cursor.const_data_ptr<std::int32_t>(),
                                            cursor.const_data_ptr<std::int32_t>() + 4);
      EXPECT_EQ(found, (std::vector<std::int32_t>{0, tokens % 5, 0, tokens % 5}));
    }
  }
}

TEST_P(MixerTest, CountsOddStores) {
  const Mixer& mixer = *mixers_.front();
  const Arm arm = testing::exact_arm("half", Dtype::float16);
  MixerCache cache = mixer.make_cache(arm, batch, at::kFloat);
  mixer.run(arm, cache, random_projected(mixer, batch, tokens, at::kFloat).mul(300.0));
  EXPECT_GT(cache.counts.cpu()[0].item<std::int64_t>(), 0);  // saturated
  MixerCache calm = mixer.make_cache(testing::exact_arm("calm"), batch, at::kFloat);
  mixer.run(testing::exact_arm("calm"), calm, random_projected(mixer, batch, tokens, at::kFloat));
  EXPECT_EQ(calm.counts.cpu()[0].item<std::int64_t>(), 0);
}

TEST_P(MixerTest, RefusesOtherShapesAndForms) {
  for (const auto& mixer : mixers_) {
    const auto on_device = at::TensorOptions(mixer->device());
    Arm arm = testing::replay_arm("odd", Dtype::float32, Dtype::float32);
    MixerCache cache = mixer->make_cache(arm, batch, at::kFloat);
    const at::Tensor projected = random_projected(*mixer, batch, tokens, at::kFloat);
    const auto refuses = [&](const at::Tensor& input, const at::Tensor& slots, const std::string& part) {
      testing::expect_error<std::invalid_argument>([&] { mixer->run(arm, cache, input, slots); }, {part, "expected"});
    };
    refuses(projected.narrow(2, 0, 100), {}, "projected");
    refuses(projected.to(at::kBFloat16), {}, "projected");
    refuses(projected, at::zeros({2}, on_device.dtype(at::kInt)), "slots");
    refuses(projected, at::zeros({batch}, on_device.dtype(at::kLong)), "slots");
    if (mixer->family() != "mamba2") continue;
    arm.ring_form = RingForm::deltas;
    testing::expect_error<std::invalid_argument>([&] { mixer->make_cache(arm, 1, at::kFloat); },
                                                 {"arm \"odd\"", "deltas", "inputs"});
  }
}

REPLAYEVAL_ON_EACH_DEVICE(MixerTest);

}  // namespace
}  // namespace replayeval
