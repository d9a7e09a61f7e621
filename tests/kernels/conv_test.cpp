// The causal convolution: against the reference, and its two modes bit for bit.
#include "kernels/conv/conv.h"
#include "kernels/storage_scalar.h"
#include "reference/mamba2.h"
#include "tests/kernels/feed.h"
#include "tests/kernels/on_device.h"

#include <cmath>
#include <random>
#include <span>
#include <utility>

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

// Elements between a tensor's rows: with the first no row but the first begins where a vector may.
constexpr std::int64_t kUnaligned = 5, kAligned = 8;

// A layer's convolution state, three slots of it, fed block by block.
class ConvStream {
 public:
  ConvStream(DeviceKind kind, const ConvProblem& p, std::int64_t pad)
      : kind_(kind),
        p_(p),
        pad_(pad),
        weight_(kind, p.weight.size() * sizeof(float)),
        bias_(kind, p.bias.size() * sizeof(float)),
        state_(kind, static_cast<std::size_t>(kSlots * p.channels * (p.taps - 1)) * dtype_size(p.dtype)) {
    weight_.upload_values(p.weight);
    bias_.upload_values(p.bias);
    state_.upload(Bytes(state_.size()));
  }

  // Tokens start..start+tokens of the one sequence for slot 2, behind padded rows; the outputs' bits.
  Bytes feed(std::int64_t start, std::int64_t tokens) {
    const std::size_t size = dtype_size(p_.dtype);
    const std::int64_t stride = p_.channels + pad_;
    DeviceBuffer in(kind_, static_cast<std::size_t>(kRows * tokens * stride) * size);
    DeviceBuffer out(kind_, in.size());
    for (std::int64_t t = 0; t < tokens; ++t) {
      const auto first = p_.in.begin() + (start + t) * p_.channels;
      in.upload(encode_all({first, first + p_.channels}, p_.dtype),
                static_cast<std::size_t>(((kRows - 1) * tokens + t) * stride) * size);
    }
    std::vector<std::int32_t> slots(kRows, -1);
    slots.back() = 2;
    DeviceBuffer slot_map(kind_, slots.size() * sizeof(std::int32_t));
    slot_map.upload_values(slots);
    causal_conv({kind_, nullptr}, {kRows, tokens, slot_map.data<std::int32_t>()},
                {p_.channels, p_.taps, weight_.data<float>(), p_.has_bias ? bias_.data<float>() : nullptr, in.data(),
                 stride, out.data(), stride, state_.data(), kSlots, p_.dtype});
    synchronize(kind_);
    Bytes dense;
    for (std::int64_t t = 0; t < tokens; ++t) {
      const auto row = [&](std::int64_t r) {
        return out.download(static_cast<std::size_t>(r * stride) * size, static_cast<std::size_t>(p_.channels) * size);
      };
      for (std::int64_t padded = 0; padded < kRows - 1; ++padded)
        EXPECT_EQ(row(padded * tokens + t), Bytes(static_cast<std::size_t>(p_.channels) * size)) << "a padded row";
      const Bytes live = row((kRows - 1) * tokens + t);
      dense.insert(dense.end(), live.begin(), live.end());
    }
    return dense;
  }
  Bytes state() const { return state_.download(); }

 private:
  static constexpr std::int64_t kSlots = 3, kRows = 6;  // no fewer than a GPU serves by vectors
  DeviceKind kind_;
  const ConvProblem& p_;
  std::int64_t pad_;
  DeviceBuffer weight_, bias_, state_;
};

class CausalConv : public OnDevice {};
REPLAYEVAL_ON_EACH_DEVICE(CausalConv);

void expect_close_to_reference(const ConvProblem& p, const std::vector<float>& out) {
  using RowMajor = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  const auto matrix = [](const std::vector<float>& v, std::int64_t rows, std::int64_t cols) -> Eigen::MatrixXd {
    return Eigen::Map<const RowMajor>(v.data(), rows, cols).cast<double>();
  };
  const Eigen::MatrixXd in = matrix(p.in, p.tokens, p.channels);
  const Eigen::MatrixXd weight = matrix(p.weight, p.channels, p.taps);
  const Eigen::VectorXd bias = matrix(p.bias, p.channels, 1).col(0);
  const Eigen::MatrixXd expected = reference::causal_conv(in, weight, bias);
  // Float32: the sum of the taps' magnitudes times a few roundings; silu changes at most 1.1 times as much.
  const Eigen::MatrixXd size = reference::causal_conv(in.cwiseAbs(), weight.cwiseAbs(), bias.cwiseAbs());
  const double unit = p.dtype == Dtype::float32 ? 0x1p-24 : p.dtype == Dtype::float16 ? 0x1p-11 : 0x1p-8;
  for (std::int64_t t = 0; t < p.tokens; ++t) {
    for (std::int64_t c = 0; c < p.channels; ++c) {
      const double allowed = 16 * 0x1p-24 * (size(t, c) + 1.0) + unit * std::fabs(expected(t, c)) * 1.01 +
                             (p.dtype == Dtype::float16 ? 0x1p-25 : 0.0);
      ASSERT_NEAR(out[static_cast<std::size_t>(t * p.channels + c)], expected(t, c), allowed);
    }
  }
}

TEST_P(CausalConv, MatchesTheReference) {
  unsigned seed = 0;
  for (const Dtype dtype : {Dtype::float32, Dtype::bfloat16, Dtype::float16}) {
    for (const std::int64_t taps : {2, 3, 4, 8}) {
      for (const std::int64_t channels : {1, 7, 64, 200}) {
        for (const std::int64_t pad : {kUnaligned, kAligned}) {
          const ConvProblem p = random_conv(channels, taps, 13, dtype, ++seed);
          ConvStream stream(GetParam(), p, pad);
          expect_close_to_reference(p, decode_all(stream.feed(0, p.tokens), dtype));
        }
      }
    }
  }
}

// All tokens in blocks of these sizes; the outputs, then the state.
std::pair<Bytes, Bytes> feed_in_cuts(DeviceKind kind, const ConvProblem& p, std::int64_t pad,
                                     const std::vector<std::int64_t>& cuts) {
  ConvStream stream(kind, p, pad);
  Bytes out;
  std::int64_t start = 0;
  for (const std::int64_t tokens : cuts) {
    const Bytes y = stream.feed(start, tokens);
    out.insert(out.end(), y.begin(), y.end());
    start += tokens;
  }
  return {out, stream.state()};
}

// 70 channels never fill vectors; 264 are more than a warp's and 2056 more than a block's.
TEST_P(CausalConv, BlocksEqualSingleTokensHoweverCutAndAligned) {
  for (const Dtype dtype : {Dtype::float32, Dtype::bfloat16, Dtype::float16}) {
    for (const std::int64_t channels : {8, 70, 264, 2056}) {
      const ConvProblem p = random_conv(channels, 4, 17, dtype, 5);
      const auto expected = feed_in_cuts(GetParam(), p, kUnaligned, std::vector<std::int64_t>(17, 1));
      for (const std::int64_t pad : {kUnaligned, kAligned}) {
        for (const std::vector<std::int64_t>& cuts :
             {std::vector<std::int64_t>(17, 1), {17}, {2, 1, 14}, {3, 3, 3, 8}}) {
          const auto found = feed_in_cuts(GetParam(), p, pad, cuts);
          EXPECT_EQ(found.first, expected.first) << channels << " channels, " << pad << " between rows";
          EXPECT_EQ(found.second, expected.second) << channels << " channels, " << pad << " between rows";
        }
      }
    }
  }
}

// So long that every warp of a block has tokens, and the last of them a part of what it may take.
TEST_P(CausalConv, LongBlocksEqualSingleTokens) {
  const ConvProblem p = random_conv(72, 4, 607, Dtype::bfloat16, 7);
  const auto expected = feed_in_cuts(GetParam(), p, kUnaligned, std::vector<std::int64_t>(607, 1));
  EXPECT_EQ(feed_in_cuts(GetParam(), p, kAligned, {607}), expected);
  EXPECT_EQ(feed_in_cuts(GetParam(), p, kAligned, {301, 306}), expected);
}

// A batch of more rows than run at once, each a slot of its own in no order, some of them padded: the outputs, then the
// state.
std::pair<Bytes, Bytes> feed_many_rows(DeviceKind kind, std::int64_t tokens, std::int64_t pad) {
  constexpr std::int64_t kRows = 1500, kChannels = 40, kStateBytes = kRows * kChannels * 3 * 2;
  const ConvProblem p = random_conv(kChannels, 4, kRows * tokens, Dtype::bfloat16, 1);
  const std::int64_t stride = kChannels + pad;
  DeviceBuffer weight(kind, p.weight.size() * sizeof(float)), bias(kind, p.bias.size() * sizeof(float));
  weight.upload_values(p.weight);
  bias.upload_values(p.bias);
  DeviceBuffer in(kind, static_cast<std::size_t>(kRows * tokens * stride) * 2), out(kind, in.size());
  for (std::int64_t r = 0; r < kRows * tokens; ++r) {
    const auto first = p.in.begin() + r * kChannels;
    in.upload(encode_all({first, first + kChannels}, p.dtype), static_cast<std::size_t>(r * stride) * 2);
  }
  DeviceBuffer state(kind, kStateBytes);
  std::mt19937 random(2);
  state.upload(encode_all(random_values(random, kRows * kChannels * 3, 0.0F, 1.0F, p.dtype), p.dtype));
  std::vector<std::int32_t> slots;
  for (std::int32_t r = 0; r < kRows; ++r) slots.push_back(r % 7 == 3 ? -1 : r * 11 % static_cast<std::int32_t>(kRows));
  DeviceBuffer slot_map(kind, slots.size() * sizeof(std::int32_t));
  slot_map.upload_values(slots);
  causal_conv({kind, nullptr}, {kRows, tokens, slot_map.data<std::int32_t>()},
              {kChannels, 4, weight.data<float>(), bias.data<float>(), in.data(), stride, out.data(), stride,
               state.data(), kRows, p.dtype});
  synchronize(kind);
  const Bytes padded = out.download();
  return {without_padding(padded, static_cast<std::size_t>(kRows * tokens), kChannels, 2, pad), state.download()};
}

TEST_P(CausalConv, ManyRows) {
  for (const std::int64_t tokens : {1, 2, 21}) {
    const auto expected = feed_many_rows(DeviceKind::cpu, tokens, kUnaligned);
    const auto unaligned = feed_many_rows(GetParam(), tokens, kUnaligned);
    const auto aligned = feed_many_rows(GetParam(), tokens, kAligned);
    EXPECT_EQ(aligned, unaligned);
    EXPECT_EQ(aligned.second, expected.second);  // inputs moved along, no arithmetic
  }
}

// Single inputs, a channel each, through silu alone, for every of some rows: the weights of the older ones are zero.
Bytes silu_of(DeviceKind kind, const Bytes& inputs, Dtype dtype, std::int64_t pad) {
  constexpr std::int64_t kRows = 8;
  const std::size_t size = dtype_size(dtype);
  const auto channels = static_cast<std::int64_t>(inputs.size() / size) / kRows, stride = channels + pad;
  std::vector<float> weights;
  for (std::int64_t c = 0; c < channels; ++c) weights.insert(weights.end(), {0.0F, 0.0F, 0.0F, 1.0F});
  DeviceBuffer weight(kind, weights.size() * sizeof(float)), state(kind, 3 * inputs.size());
  DeviceBuffer in(kind, static_cast<std::size_t>(kRows * stride) * size), out(kind, in.size());
  weight.upload_values(weights);
  state.upload(Bytes(state.size()));
  const std::size_t row_bytes = static_cast<std::size_t>(channels) * size;
  for (std::size_t row = 0; row < kRows; ++row)
    in.upload(std::span(inputs).subspan(row * row_bytes, row_bytes), row * static_cast<std::size_t>(stride) * size);
  causal_conv(
      {kind, nullptr}, {kRows, 1, nullptr},
      {channels, 4, weight.data<float>(), nullptr, in.data(), stride, out.data(), stride, state.data(), kRows, dtype});
  synchronize(kind);
  return without_padding(out.download(), kRows, channels, size, pad);
}

// The vectors' division is not the language's: it has to round as that one does, wherever the value lies.
TEST_P(CausalConv, SiluOfEveryValueDoesNotDependOnTheAlignment) {
  if (GetParam() == DeviceKind::cpu) GTEST_SKIP() << "the CPU has one way to compute it";
  std::vector<std::uint16_t> every_sixteen_bits;
  for (std::uint32_t bits = 0; bits < 0x10000U; ++bits) every_sixteen_bits.push_back(static_cast<std::uint16_t>(bits));
  const auto halves = std::as_bytes(std::span(every_sixteen_bits));
  for (const Dtype dtype : {Dtype::bfloat16, Dtype::float16}) {
    const Bytes inputs(halves.begin(), halves.end());
    EXPECT_EQ(silu_of(GetParam(), inputs, dtype, kAligned), silu_of(GetParam(), inputs, dtype, kUnaligned));
  }
  std::mt19937 random(3);
  std::vector<std::uint32_t> words;
  while (words.size() < std::size_t{1} << 20) {
    const auto bits = static_cast<std::uint32_t>(random());
    // Half of them of a size that silu bends, from 2^-8 to 2^8.
    words.push_back(words.size() % 2 == 0 ? bits : (bits & 0x807FFFFFU) | (119U + (bits >> 23) % 16U) << 23);
  }
  const auto bytes = std::as_bytes(std::span(words));
  const Bytes inputs(bytes.begin(), bytes.end());
  EXPECT_EQ(silu_of(GetParam(), inputs, Dtype::float32, kAligned),
            silu_of(GetParam(), inputs, Dtype::float32, kUnaligned));
}

TEST_P(CausalConv, ASlotOutOfRangeShowsOnAGpu) {
  if (GetParam() == DeviceKind::cpu) GTEST_SKIP() << "the CPU refuses the call";
  constexpr std::int64_t kRows = 6;
  DeviceBuffer memory(GetParam(), 4096), out(GetParam(), 256), slots(GetParam(), kRows * sizeof(std::int32_t));
  memory.upload(Bytes(memory.size()));
  slots.upload_values(std::vector<std::int32_t>(kRows, 2));
  for (const std::int64_t channels : {7, 8}) {
    out.upload(Bytes(out.size()));
    causal_conv({GetParam(), nullptr}, {kRows, 1, slots.data<std::int32_t>()},
                {channels, 4, memory.data<float>(), nullptr, memory.data(), channels, out.data(), channels,
                 memory.data(), 2, Dtype::float32});
    synchronize(GetParam());
    const std::vector<float> values = decode_all(out.download(), Dtype::float32);
    for (std::size_t i = 0; i < values.size(); ++i)
      EXPECT_EQ(std::isnan(values[i]), i < static_cast<std::size_t>(kRows * channels)) << i;
    EXPECT_EQ(memory.download(), Bytes(memory.size()));
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
  ConvStream stream(GetParam(), p, kUnaligned);
  const std::vector<float> out = decode_all(stream.feed(0, 1), Dtype::float32);
  EXPECT_EQ(out[0], 0.0F);
  EXPECT_EQ(out[1], 1000.0F);
  EXPECT_TRUE(std::isnan(out[2]));
  EXPECT_EQ(out[3], 90.0F);
}

TEST(CausalConvArguments, Refusals) {
  DeviceBuffer memory(DeviceKind::cpu, 4096);
  auto* floats = memory.data<float>();
  const Conv right{8, 4, floats, floats, floats, 8, floats, 8, floats, 2, Dtype::float32};
  const auto refusal = [](const Conv& conv) -> std::string {
    try {
      causal_conv({}, {2, 1, nullptr}, conv);
    } catch (const std::invalid_argument& error) {
      return error.what();
    }
    return "not refused";
  };
  Conv broken = right;
  broken.conv_kernel = 9;
  EXPECT_EQ(refusal(broken), "causal_conv: conv_kernel is 9; allowed: 2 to 8");
  broken = right;
  broken.in_stride = 7;
  EXPECT_EQ(refusal(broken), "causal_conv: in_stride is 7, smaller than the row of 8 elements");
  broken = right;
  broken.state = nullptr;
  EXPECT_EQ(refusal(broken), "causal_conv: state is null");
}

}  // namespace
}  // namespace replayeval::testing
