// Each family's convolution, recurrence and norm once more, in ATen's own operations and float64.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "eval/executors/device.h"
#include "tests/eval/executors/arms.h"
#include "tests/eval/executors/mixer_runs.h"
#include "tests/kernels/on_device.h"

namespace replayeval {
namespace {

using testing::MixerOutputs;

constexpr std::int64_t batch = 3, tokens = 23;

at::Tensor wide(const at::Tensor& x) { return x.to(at::kCPU, at::kDouble); }

struct Expected {
  at::Tensor conv, y, out, state;
};

at::Tensor silu_of_conv(const at::Tensor& in, const at::Tensor& weight, const at::Tensor& bias) {
  const at::Tensor padded = at::constant_pad_nd(in.transpose(1, 2), {3, 0});
  const at::Tensor sums = at::conv1d(padded, weight.unsqueeze(1), bias, at::IntArrayRef(1), at::IntArrayRef(0),
                                     at::IntArrayRef(1), weight.size(0));
  return at::silu(sums).transpose(1, 2);
}

void expect_close(const MixerOutputs& ours, const Expected& expected) {
  EXPECT_TRUE(at::allclose(wide(ours.result.conv), expected.conv, 1e-5, 1e-6));
  EXPECT_TRUE(at::allclose(wide(ours.result.y), expected.y, 1e-4, 1e-5));
  EXPECT_TRUE(at::allclose(wide(ours.result.out), expected.out, 1e-4, 1e-5));
  EXPECT_TRUE(at::allclose(wide(ours.state), expected.state, 1e-4, 1e-5));
}

class MixerFormulas : public testing::OnDevice {
 protected:
  void SetUp() override {
    OnDevice::SetUp();
    at::manual_seed(0);
  }
};

TEST_P(MixerFormulas, Mamba2) {
  const at::Device device = torch_device(GetParam());
  const mamba2::Shape shape{6, 3, 24, 40};
  const std::int64_t inner = 144, group = 120, channels = inner + 2 * group;
  const at::Tensor weight = testing::random_tensor({channels, 4}, device, 0.5);
  const at::Tensor bias = testing::random_tensor({channels}, device, 0.2);
  const at::Tensor norm_weight = testing::random_tensor({inner}, device);
  const at::Tensor A_log = testing::random_tensor({6}, device), D = testing::random_tensor({6}, device);
  const at::Tensor dt_bias = testing::random_tensor({6}, device).sub(1.0);
  MixerNorm norm;
  norm.weight = norm_weight;
  norm.group_size = 48;
  const Mamba2Mixer mixer(shape, {4, weight, bias}, norm, {A_log, D, dt_bias, 0.0F, 1e30F});
  const at::Tensor projected = testing::random_projected(mixer, batch, tokens, at::kFloat);

  const at::Tensor in = wide(projected), z = in.narrow(2, 0, inner);
  const at::Tensor u = silu_of_conv(in.narrow(2, inner, channels), wide(weight), wide(bias));
  const at::Tensor dt = at::softplus(in.narrow(2, inner + channels, 6) + wide(dt_bias));
  const at::Tensor x = u.narrow(2, 0, inner).reshape({batch, tokens, 6, 24});
  const auto per_head = [&](std::int64_t begin) {
    return u.narrow(2, begin, group).reshape({batch, tokens, 3, 40}).repeat_interleave(2, 2);
  };
  const at::Tensor B = per_head(inner), C = per_head(inner + group);
  at::Tensor state = at::zeros({batch, 6, 24, 40}, at::kDouble);
  std::vector<at::Tensor> ys;
  for (std::int64_t t = 0; t < tokens; ++t) {
    const at::Tensor step = dt.select(1, t), xt = x.select(1, t);
    const at::Tensor decay = at::exp(-at::exp(wide(A_log)) * step);
    state = decay.unsqueeze(-1).unsqueeze(-1) * state +
            (step.unsqueeze(-1) * xt).unsqueeze(-1) * B.select(1, t).unsqueeze(2);
    ys.push_back((state * C.select(1, t).unsqueeze(2)).sum(-1) + wide(D).unsqueeze(-1) * xt);
  }
  const at::Tensor y = at::stack(ys, 1).reshape({batch, tokens, inner});
  const at::Tensor gated = (y * at::silu(z)).reshape({batch, tokens, 3, 48});
  const at::Tensor normed = gated * (gated.square().mean(-1, true) + 1e-5).rsqrt();
  const at::Tensor out = normed.reshape({batch, tokens, inner}) * wide(norm_weight);
  expect_close(testing::run_in_pieces(mixer, testing::exact_arm("exact"), projected, {tokens}), {u, y, out, state});
}

TEST_P(MixerFormulas, DeltaRule) {
  for (const auto family : {delta_rule::Family::gated_delta, delta_rule::Family::kda}) {
    const bool kda = family == delta_rule::Family::kda;
    const auto mixer = testing::random_delta_rule(family, torch_device(GetParam()));
    const delta_rule::Shape& shape = mixer->shape();
    const std::int64_t keys = shape.num_key_heads * 40, values = 144, gates = kda ? 40 : 1;
    // The convolution is the one that the test above checks.
    const at::Tensor projected = testing::random_projected(*mixer, batch, tokens, at::kFloat);
    const MixerOutputs ours = testing::run_in_pieces(*mixer, testing::exact_arm("exact"), projected, {tokens});

    const at::Tensor in = wide(projected), u = wide(ours.result.conv);
    const auto heads = [&](std::int64_t begin, std::int64_t width, std::int64_t count) {
      return u.narrow(2, begin, width).reshape({batch, tokens, count, -1});
    };
    const auto unit = [&](const at::Tensor& x) {
      const at::Tensor whole = x / (x.square().sum(-1, true) + 1e-6).sqrt();
      return whole.repeat_interleave(6 / shape.num_key_heads, 2);
    };
    const at::Tensor q = unit(heads(0, keys, shape.num_key_heads)) / std::sqrt(40.0);
    const at::Tensor k = unit(heads(keys, keys, shape.num_key_heads)), v = heads(2 * keys, values, 6);
    const std::int64_t z_begin = 2 * keys + values, b_begin = z_begin + values;
    const at::Tensor z = in.narrow(2, z_begin, values).reshape({batch, tokens, 6, 24});
    const at::Tensor beta = at::sigmoid(in.narrow(2, b_begin, 6));
    const at::Tensor f = in.narrow(2, b_begin + 6, 6 * gates).reshape({batch, tokens, 6, gates});
    const at::Tensor g =
        -at::exp(wide(mixer->weights().A_log)).unsqueeze(-1) * at::softplus(f + wide(mixer->weights().dt_bias), 1, 700);
    at::Tensor state = at::zeros({batch, 6, 24, 40}, at::kDouble);
    std::vector<at::Tensor> ys;
    for (std::int64_t t = 0; t < tokens; ++t) {
      const at::Tensor kt = k.select(1, t).unsqueeze(2);
      state = state * at::exp(g.select(1, t)).unsqueeze(2);
      const at::Tensor d = beta.select(1, t).unsqueeze(-1) * (v.select(1, t) - (state * kt).sum(-1));
      state = state + d.unsqueeze(-1) * kt;
      ys.push_back((state * q.select(1, t).unsqueeze(2)).sum(-1));
    }
    const at::Tensor y = at::stack(ys, 1);
    const at::Tensor weight = wide(mixer->norm().weight).reshape({6, 24});
    const at::Tensor normed = y * (y.square().mean(-1, true) + 1e-6).rsqrt() * weight;
    const at::Tensor out = normed * (kda ? at::sigmoid(z) : at::silu(z));
    expect_close(ours, {u, y.reshape({batch, tokens, values}), out.reshape({batch, tokens, values}), state});
  }
}

REPLAYEVAL_ON_EACH_DEVICE(MixerFormulas);

}  // namespace
}  // namespace replayeval
