// The causal convolution: against the reference, and its two modes bit for bit.
#include "kernels/mamba2/conv.h"
#include "kernels/storage_scalar.h"
#include "reference/mamba2.h"
#include "tests/kernels/on_device.h"

#include <cmath>
#include <random>

namespace replayeval::testing {
namespace {

struct ConvProblem {
  std::int64_t channels = 0, taps = 4, tokens = 0;
  Dtype dtype = Dtype::float32;
  bool has_bias = true;
  std::vector<float> weight, bias, in;  // in: [tokens, channels]
};

ConvProblem random_conv(std::int64_t channels, std::int64_t taps, std::int64_t tokens, Dtype dtype, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  ConvProblem p{channels, taps, tokens, dtype, seed % 3 != 0, {}, {}, {}};
  for (std::int64_t i = 0; i < channels * taps; ++i) p.weight.push_back(normal(random));
  for (std::int64_t i = 0; i < channels; ++i) p.bias.push_back(p.has_bias ? normal(random) : 0.0F);
  for (std::int64_t i = 0; i < tokens * channels; ++i) {
    p.in.push_back(storage::rounded(3.0F * normal(random), {dtype, Overflow::infinity}));
  }
  return p;
}

// A layer's convolution state, three slots of it, fed block by block.
class ConvStream {
 public:
  ConvStream(DeviceKind kind, const ConvProblem& p)
      : kind_(kind),
        p_(p),
        weight_(kind, p.weight.size() * sizeof(float)),
        bias_(kind, p.bias.size() * sizeof(float)),
        state_(kind, static_cast<std::size_t>(kSlots * p.channels * (p.taps - 1)) * dtype_size(p.dtype)) {
    weight_.upload_values(p.weight);
    bias_.upload_values(p.bias);
    state_.upload(Bytes(state_.size()));
  }

  // Tokens start..start+tokens of the one sequence for slot 2, beside a padded row; the outputs' bits.
  Bytes feed(std::int64_t start, std::int64_t tokens) {
    const std::size_t size = dtype_size(p_.dtype);
    const std::int64_t stride = p_.channels + 5;
    DeviceBuffer in(kind_, static_cast<std::size_t>(2 * tokens * stride) * size);
    DeviceBuffer out(kind_, in.size());
    for (std::int64_t t = 0; t < tokens; ++t) {
      const auto first = p_.in.begin() + (start + t) * p_.channels;
      in.upload(encode_all({first, first + p_.channels}, p_.dtype),
                static_cast<std::size_t>((tokens + t) * stride) * size);
    }
    const std::vector<std::int32_t> slots = {-1, 2};
    DeviceBuffer slot_map(kind_, 2 * sizeof(std::int32_t));
    slot_map.upload_values(slots);
    mamba2::causal_conv({kind_, nullptr}, {2, tokens, slot_map.data<std::int32_t>()},
                        {p_.channels, p_.taps, weight_.data<float>(), p_.has_bias ? bias_.data<float>() : nullptr,
                         in.data(), stride, out.data(), stride, state_.data(), kSlots, p_.dtype});
    synchronize(kind_);
    Bytes dense;
    for (std::int64_t t = 0; t < tokens; ++t) {
      const auto row = [&](std::int64_t r) {
        return out.download(static_cast<std::size_t>(r * stride) * size, static_cast<std::size_t>(p_.channels) * size);
      };
      EXPECT_EQ(row(t), Bytes(static_cast<std::size_t>(p_.channels) * size)) << "the padded row";
      const Bytes live = row(tokens + t);
      dense.insert(dense.end(), live.begin(), live.end());
    }
    return dense;
  }
  Bytes state() const { return state_.download(); }

 private:
  static constexpr std::int64_t kSlots = 3;
  DeviceKind kind_;
  const ConvProblem& p_;
  DeviceBuffer weight_, bias_, state_;
};

class CausalConv : public OnDevice {};
REPLAYEVAL_ON_EACH_DEVICE(CausalConv);

TEST_P(CausalConv, MatchesTheReference) {
  unsigned seed = 0;
  for (const Dtype dtype : {Dtype::float32, Dtype::bfloat16, Dtype::float16}) {
    for (const std::int64_t taps : {2, 3, 4, 8}) {
      for (const std::int64_t channels : {1, 7, 64, 200}) {
        const ConvProblem p = random_conv(channels, taps, 13, dtype, ++seed);
        ConvStream stream(GetParam(), p);
        const std::vector<float> out = decode_all(stream.feed(0, p.tokens), dtype);
        using RowMajor = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
        const auto matrix = [](const std::vector<float>& v, std::int64_t rows, std::int64_t cols) -> Eigen::MatrixXd {
          return Eigen::Map<const RowMajor>(v.data(), rows, cols).cast<double>();
        };
        const Eigen::MatrixXd in = matrix(p.in, p.tokens, channels);
        const Eigen::MatrixXd weight = matrix(p.weight, channels, taps);
        const Eigen::MatrixXd expected = reference::causal_conv(in, weight, matrix(p.bias, channels, 1).col(0));
        // Float32: the sum of the taps' magnitudes times a few roundings; silu changes at most 1.1 times as much.
        const Eigen::MatrixXd size =
            reference::causal_conv(in.cwiseAbs(), weight.cwiseAbs(), matrix(p.bias, channels, 1).col(0).cwiseAbs());
        const double unit = dtype == Dtype::float32 ? 0x1p-24 : dtype == Dtype::float16 ? 0x1p-11 : 0x1p-8;
        for (std::int64_t t = 0; t < p.tokens; ++t) {
          for (std::int64_t c = 0; c < channels; ++c) {
            const double allowed = 16 * 0x1p-24 * (size(t, c) + 1.0) + unit * std::fabs(expected(t, c)) * 1.01 +
                                   (dtype == Dtype::float16 ? 0x1p-25 : 0.0);
            ASSERT_NEAR(out[static_cast<std::size_t>(t * channels + c)], expected(t, c), allowed);
          }
        }
      }
    }
  }
}

TEST_P(CausalConv, BlocksEqualSingleTokensHoweverCut) {
  for (const Dtype dtype : {Dtype::float32, Dtype::bfloat16, Dtype::float16}) {
    const ConvProblem p = random_conv(70, 4, 17, dtype, 5);
    ConvStream stepwise(GetParam(), p);
    Bytes expected;
    for (std::int64_t t = 0; t < p.tokens; ++t) {
      const Bytes y = stepwise.feed(t, 1);
      expected.insert(expected.end(), y.begin(), y.end());
    }
    for (const std::vector<std::int64_t>& cuts : {std::vector<std::int64_t>{17}, {2, 1, 14}, {3, 3, 3, 8}}) {
      ConvStream blocks(GetParam(), p);
      Bytes out;
      std::int64_t start = 0;
      for (const std::int64_t tokens : cuts) {
        const Bytes y = blocks.feed(start, tokens);
        out.insert(out.end(), y.begin(), y.end());
        start += tokens;
      }
      EXPECT_EQ(out, expected);
      EXPECT_EQ(blocks.state(), stepwise.state());
    }
  }
}

// Large negative inputs end at zero and infinities and NaN stay in their channel.
TEST_P(CausalConv, ExtremeInputs) {
  ConvProblem p{4,
                2,
                1,
                Dtype::float32,
                false,
                {0, 1, 0, 1, 0, 1, 0, 1},
                {0, 0, 0, 0},
                {-1000.0F, 1000.0F, std::nanf(""), 90.0F}};
  ConvStream stream(GetParam(), p);
  const std::vector<float> out = decode_all(stream.feed(0, 1), Dtype::float32);
  EXPECT_EQ(out[0], 0.0F);
  EXPECT_EQ(out[1], 1000.0F);
  EXPECT_TRUE(std::isnan(out[2]));
  EXPECT_EQ(out[3], 90.0F);
}

}  // namespace
}  // namespace replayeval::testing
