#include "eval/executors/mamba2_executor.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <numeric>
#include <stdexcept>

#include "eval/executors/device.h"
#include "tests/eval/checkpoint/expect_error.h"
#include "tests/eval/executors/arms.h"
#include "tests/eval/executors/random_mixer.h"
#include "tests/kernels/on_device.h"

namespace replayeval {
namespace {

using testing::random_mixer;
using testing::random_projected;

constexpr std::int64_t batch = 3, tokens = 23;

struct Outputs {
  Mamba2Result result;
  at::Tensor state;
};

// Runs `projected` in pieces of the given lengths and joins what comes out.
Outputs run_in_pieces(const Mamba2Mixer& mixer, const Arm& arm, const at::Tensor& projected,
                      const std::vector<std::int64_t>& pieces) {
  Mamba2Cache cache = make_mamba2_cache(mixer, arm, batch, projected.scalar_type(), projected.device());
  std::vector<at::Tensor> y, out, conv;
  std::int64_t begin = 0;
  for (const std::int64_t length : pieces) {
    const Mamba2Result part = run_mamba2(mixer, arm, cache, projected.narrow(1, begin, length).contiguous());
    advance_cursor(arm, cache.cursor, batch, length);
    y.push_back(part.y);
    out.push_back(part.out);
    conv.push_back(part.conv);
    begin += length;
  }
  return {{at::cat(y, 1), at::cat(out, 1), at::cat(conv, 1)}, present_state(mixer, arm, cache, batch)};
}

void expect_same_bits(const Outputs& a, const Outputs& b, const std::string& what) {
  EXPECT_TRUE(at::equal(a.result.conv, b.result.conv)) << what;
  EXPECT_TRUE(at::equal(a.result.y, b.result.y)) << what;
  EXPECT_TRUE(at::equal(a.result.out, b.result.out)) << what;
  EXPECT_TRUE(at::equal(a.state, b.state)) << what;
}

class Mamba2Executor : public testing::OnDevice {
 protected:
  void SetUp() override {
    OnDevice::SetUp();
    at::manual_seed(0);
  }
};

TEST_P(Mamba2Executor, ModesAndCutsGiveTheSameBits) {
  const Mamba2Mixer mixer = random_mixer(torch_device(GetParam()));
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
    const at::Tensor projected = random_projected(mixer, batch, tokens, type);
    for (const Arm& arm : testing::every_kind_of_arm()) {
      const Outputs whole = run_in_pieces(mixer, arm, projected, {tokens});
      EXPECT_TRUE(at::isfinite(whole.result.out).all().item<bool>()) << arm.name;
      const std::vector<std::int64_t> steps(static_cast<std::size_t>(tokens), 1);
      expect_same_bits(whole, run_in_pieces(mixer, arm, projected, steps), arm.name + ", stepwise");
      expect_same_bits(whole, run_in_pieces(mixer, arm, projected, {4, 1, 9, 9}), arm.name + ", cut");
    }
  }
}

TEST_P(Mamba2Executor, ReplayAgreesWithExactWhenNothingIsRounded) {
  const Mamba2Mixer mixer = random_mixer(torch_device(GetParam()));
  const at::Tensor projected = random_projected(mixer, batch, tokens, at::kFloat);
  const Outputs exact = run_in_pieces(mixer, testing::exact_arm("exact"), projected, {tokens});
  const Outputs replay =
      run_in_pieces(mixer, testing::replay_arm("replay", Dtype::float32, Dtype::float32), projected, {tokens});
  EXPECT_TRUE(at::allclose(exact.result.out, replay.result.out, 1e-4, 1e-5));
  EXPECT_TRUE(at::allclose(exact.state, replay.state, 1e-4, 1e-5));
  EXPECT_FALSE(at::equal(exact.state, replay.state));  // else the arm would not have been run as asked
}

// The recurrence, the convolution and the norm once more, in ATen's own operations and float64.
TEST_P(Mamba2Executor, ExactAgreesWithTheFormulas) {
  const Mamba2Mixer mixer = random_mixer(torch_device(GetParam()));
  const at::Tensor projected = random_projected(mixer, batch, tokens, at::kFloat);
  const Outputs ours = run_in_pieces(mixer, testing::exact_arm("exact"), projected, {tokens});

  const auto wide = [](const at::Tensor& x) { return x.to(at::kCPU, at::kDouble); };
  const at::Tensor in = wide(projected);
  const std::int64_t inner = 144, group = 120, channels = inner + 2 * group;
  const at::Tensor z = in.narrow(2, 0, inner), xbc = in.narrow(2, inner, channels);
  const at::Tensor dt = at::softplus(in.narrow(2, inner + channels, 6) + wide(mixer.dt_bias));
  const at::Tensor u =
      at::silu(at::conv1d(at::constant_pad_nd(xbc.transpose(1, 2), {3, 0}), wide(mixer.conv_weight).unsqueeze(1),
                          wide(mixer.conv_bias), at::IntArrayRef(1), at::IntArrayRef(0), at::IntArrayRef(1), channels))
          .transpose(1, 2);
  const at::Tensor x = u.narrow(2, 0, inner).reshape({batch, tokens, 6, 24});
  const auto per_head = [&](std::int64_t begin) {
    return u.narrow(2, begin, group).reshape({batch, tokens, 3, 40}).repeat_interleave(2, 2);
  };
  const at::Tensor B = per_head(inner), C = per_head(inner + group);
  at::Tensor state = at::zeros({batch, 6, 24, 40}, at::kDouble);
  std::vector<at::Tensor> ys;
  for (std::int64_t t = 0; t < tokens; ++t) {
    const at::Tensor step = dt.select(1, t), xt = x.select(1, t);
    const at::Tensor decay = at::exp(-at::exp(wide(mixer.A_log)) * step);
    state = decay.unsqueeze(-1).unsqueeze(-1) * state +
            (step.unsqueeze(-1) * xt).unsqueeze(-1) * B.select(1, t).unsqueeze(2);
    ys.push_back((state * C.select(1, t).unsqueeze(2)).sum(-1) + wide(mixer.D).unsqueeze(-1) * xt);
  }
  const at::Tensor y = at::stack(ys, 1).reshape({batch, tokens, inner});
  const at::Tensor gated = (y * at::silu(z)).reshape({batch, tokens, 3, 48});
  const at::Tensor normed = gated * (gated.square().mean(-1, true) + 1e-5).rsqrt();
  const at::Tensor out = normed.reshape({batch, tokens, inner}) * wide(mixer.norm_weight);

  EXPECT_TRUE(at::allclose(wide(ours.result.conv), u, 1e-5, 1e-6));
  EXPECT_TRUE(at::allclose(wide(ours.result.y), y, 1e-4, 1e-5));
  EXPECT_TRUE(at::allclose(wide(ours.result.out), out, 1e-4, 1e-5));
  EXPECT_TRUE(at::allclose(wide(ours.state), state, 1e-4, 1e-5));
}

TEST_P(Mamba2Executor, SlotsNameTheRowsOfTheCaches) {
  const at::Device device = torch_device(GetParam());
  const Mamba2Mixer mixer = random_mixer(device);
  const at::Tensor projected = random_projected(mixer, 2, tokens, at::kFloat);
  const at::Tensor slots = at::tensor({3, 1}, at::kInt).to(device);
  for (const Arm& arm : {testing::exact_arm("exact"), testing::replay_arm("replay", Dtype::float32, Dtype::bfloat16)}) {
    Mamba2Cache mapped = make_mamba2_cache(mixer, arm, 4, at::kFloat, device);
    Mamba2Cache plain = make_mamba2_cache(mixer, arm, 2, at::kFloat, device);
    const Mamba2Result a = run_mamba2(mixer, arm, mapped, projected, slots);
    const Mamba2Result b = run_mamba2(mixer, arm, plain, projected);
    advance_cursor(arm, mapped.cursor, 2, tokens, slots);
    advance_cursor(arm, plain.cursor, 2, tokens);
    EXPECT_TRUE(at::equal(a.out, b.out)) << arm.name;
    EXPECT_TRUE(at::equal(present_state(mixer, arm, mapped, 2, slots), present_state(mixer, arm, plain, 2)));
    EXPECT_EQ(mapped.state.select(0, 0).count_nonzero().item<std::int64_t>(), 0);
    EXPECT_EQ(mapped.conv_state.select(0, 2).count_nonzero().item<std::int64_t>(), 0);
    if (arm.executor == Executor::exact) continue;
    const at::Tensor cursor = mapped.cursor.cpu();
    const std::vector<std::int32_t> found(cursor.const_data_ptr<std::int32_t>(),
                                          cursor.const_data_ptr<std::int32_t>() + 4);
    EXPECT_EQ(found, (std::vector<std::int32_t>{0, tokens % 5, 0, tokens % 5}));
  }
}

TEST_P(Mamba2Executor, CountsOddStores) {
  const at::Device device = torch_device(GetParam());
  const Mamba2Mixer mixer = random_mixer(device);
  const Arm arm = testing::exact_arm("half", Dtype::float16);
  Mamba2Cache cache = make_mamba2_cache(mixer, arm, batch, at::kFloat, device);
  run_mamba2(mixer, arm, cache, random_projected(mixer, batch, tokens, at::kFloat).mul(300.0));
  EXPECT_GT(cache.counts.cpu()[0].item<std::int64_t>(), 0);  // saturated
  Mamba2Cache calm = make_mamba2_cache(mixer, testing::exact_arm("calm"), batch, at::kFloat, device);
  run_mamba2(mixer, testing::exact_arm("calm"), calm, random_projected(mixer, batch, tokens, at::kFloat));
  EXPECT_EQ(calm.counts.cpu()[0].item<std::int64_t>(), 0);
}

TEST_P(Mamba2Executor, RefusesOtherShapesAndForms) {
  const at::Device device = torch_device(GetParam());
  const Mamba2Mixer mixer = random_mixer(device);
  Arm arm = testing::replay_arm("odd", Dtype::float32, Dtype::float32);
  Mamba2Cache cache = make_mamba2_cache(mixer, arm, batch, at::kFloat, device);
  const at::Tensor projected = random_projected(mixer, batch, tokens, at::kFloat);
  const auto refuses = [&](const at::Tensor& input, const at::Tensor& slots, const std::string& part) {
    testing::expect_error<std::invalid_argument>([&] { run_mamba2(mixer, arm, cache, input, slots); },
                                                 {part, "expected"});
  };
  refuses(projected.narrow(2, 0, 100), {}, "projected");
  refuses(projected.to(at::kBFloat16), {}, "projected");
  refuses(projected, at::zeros({2}, at::TensorOptions(device).dtype(at::kInt)), "slots");
  refuses(projected, at::zeros({batch}, at::TensorOptions(device).dtype(at::kLong)), "slots");
  arm.ring_form = RingForm::deltas;
  testing::expect_error<std::invalid_argument>([&] { make_mamba2_cache(mixer, arm, 1, at::kFloat, device); },
                                               {"arm \"odd\"", "deltas", "inputs"});
}

REPLAYEVAL_ON_EACH_DEVICE(Mamba2Executor);

}  // namespace
}  // namespace replayeval
