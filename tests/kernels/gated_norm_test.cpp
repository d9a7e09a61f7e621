// Gate and group RMS norm in each order, and the gate alone: against float64, and row by row independent.
#include "kernels/gated_norm/gated_norm.h"
#include "kernels/storage_scalar.h"
#include "tests/kernels/feed.h"
#include "tests/kernels/on_device.h"

#include <cmath>
#include <random>

namespace replayeval::testing {
namespace {

using Norm = replayeval::GatedNorm;

constexpr GateForm kForms[] = {GateForm::gate_then_norm, GateForm::norm_then_gate, GateForm::gate_only};

struct NormProblem {
  std::int64_t rows = 0, width = 0, group = 0;
  Dtype y_dtype = Dtype::float32, dtype = Dtype::float32;
  std::vector<float> y, z, weight;
  GateForm form = GateForm::gate_then_norm;
  GateActivation activation = GateActivation::silu;
};

NormProblem random_norm(std::int64_t rows, std::int64_t width, std::int64_t group, Dtype y_dtype, Dtype dtype,
                        unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  NormProblem p{rows, width, group, y_dtype, dtype, {}, {}, {}, GateForm::gate_then_norm, GateActivation::silu};
  for (std::int64_t i = 0; i < rows * width; ++i) {
    p.y.push_back(storage::rounded(4.0F * normal(random), {y_dtype, Overflow::infinity}));
    p.z.push_back(storage::rounded(2.0F * normal(random), {dtype, Overflow::infinity}));
  }
  for (std::int64_t i = 0; i < width; ++i) p.weight.push_back(normal(random));
  return p;
}

// Elements between the rows of y, z and out.
struct Pads {
  std::int64_t y, z, out;
};
constexpr Pads kUnaligned = {1, 3, 0}, kAligned = {8, 16, 24};

// Rows first..first+rows of the problem in one call; the outputs' bits.
Bytes run(DeviceKind kind, const NormProblem& p, std::int64_t first, std::int64_t rows, const Pads& pads = kUnaligned) {
  const auto upload = [&](const std::vector<float>& values, Dtype dtype, std::int64_t stride) {
    DeviceBuffer buffer(kind, static_cast<std::size_t>(rows * stride) * dtype_size(dtype));
    for (std::int64_t r = 0; r < rows; ++r) {
      const auto start = values.begin() + (first + r) * p.width;
      buffer.upload(encode_all({start, start + p.width}, dtype),
                    static_cast<std::size_t>(r * stride) * dtype_size(dtype));
    }
    return buffer;
  };
  const std::int64_t y_stride = p.width + pads.y, z_stride = p.width + pads.z, out_stride = p.width + pads.out;
  DeviceBuffer y = upload(p.y, p.y_dtype, y_stride);
  DeviceBuffer z = upload(p.z, p.dtype, z_stride);
  DeviceBuffer weight(kind, p.weight.size() * sizeof(float));
  weight.upload_values(p.weight);
  const float* weight_data = p.form == GateForm::gate_only ? nullptr : weight.data<float>();
  DeviceBuffer out(kind, static_cast<std::size_t>(rows * out_stride) * dtype_size(p.dtype));
  gated_norm({kind, nullptr}, {rows, p.width, p.group, 1e-5F, weight_data, y.data(), y_stride, p.y_dtype, z.data(),
                               z_stride, out.data(), out_stride, p.dtype, p.form, p.activation});
  synchronize(kind);
  return without_padding(out.download(), static_cast<std::size_t>(rows), p.width, dtype_size(p.dtype), pads.out);
}

// Column by column of row r, in float64.
std::vector<double> expected_row(const NormProblem& p, std::int64_t r) {
  std::vector<double> row;
  for (std::int64_t g = 0; g < p.width; g += p.group) {
    const auto at = [&](std::int64_t i) { return static_cast<std::size_t>(r * p.width + i); };
    const auto gate = [&](std::int64_t i) {
      const auto z = static_cast<double>(p.z[at(i)]);
      return (p.activation == GateActivation::silu ? z : 1.0) / (1.0 + std::exp(-z));
    };
    const auto h = [&](std::int64_t i) { return p.y[at(i)] * (p.form == GateForm::norm_then_gate ? 1.0 : gate(i)); };
    double squares = 0.0;
    for (std::int64_t i = g; i < g + p.group; ++i) squares += h(i) * h(i);
    const double inverse = 1.0 / std::sqrt(squares / static_cast<double>(p.group) + 1e-5);
    for (std::int64_t i = g; i < g + p.group; ++i) {
      const double scale = p.form == GateForm::gate_only ? 1.0 : p.weight[static_cast<std::size_t>(i)] * inverse;
      row.push_back(h(i) * scale * (p.form == GateForm::norm_then_gate ? gate(i) : 1.0));
    }
  }
  return row;
}

void expect_close(const NormProblem& p, const std::vector<float>& out) {
  const double unit = p.dtype == Dtype::float32 ? 0.0 : p.dtype == Dtype::float16 ? 0x1p-11 : 0x1p-8;
  const double smallest = p.dtype == Dtype::float16 ? 0x1p-25 : 0x1p-126;
  for (std::int64_t r = 0; r < p.rows; ++r) {
    const std::vector<double> expected = expected_row(p, r);
    for (std::int64_t i = 0; i < p.width; ++i) {
      const double value = expected[static_cast<std::size_t>(i)];
      ASSERT_NEAR(out[static_cast<std::size_t>(r * p.width + i)], value,
                  (32 * 0x1p-24 + 1.01 * unit) * std::fabs(value) + smallest)
          << "form " << static_cast<int>(p.form) << " row " << r << " column " << i;
    }
  }
}

class GatedNorm : public OnDevice {};
REPLAYEVAL_ON_EACH_DEVICE(GatedNorm);

TEST_P(GatedNorm, MatchesFloat64) {
  unsigned seed = 0;
  for (const Dtype dtype : {Dtype::float32, Dtype::bfloat16, Dtype::float16})
    for (const Dtype y_dtype : {Dtype::float32, Dtype::bfloat16})
      for (const auto& [width, group] : std::vector<std::pair<std::int64_t, std::int64_t>>{
               {8, 8}, {30, 10}, {768, 384}, {1000, 1000}, {5, 1}, {2400, 1200}, {8200, 8200}}) {
        NormProblem p = random_norm(3, width, group, y_dtype, dtype, ++seed);
        for (const GateForm form : kForms) {
          p.form = form;
          for (const GateActivation activation : {GateActivation::silu, GateActivation::sigmoid}) {
            p.activation = activation;
            for (const Pads& pads : {kUnaligned, kAligned})
              expect_close(p, decode_all(run(GetParam(), p, 0, 3, pads), dtype));
          }
        }
      }
}

// Groups of a few threads and of several warps.
TEST_P(GatedNorm, ARowDoesNotKnowItsNeighbours) {
  constexpr std::int64_t kRows = 13;
  for (const auto& [width, group] : std::vector<std::pair<std::int64_t, std::int64_t>>{{96, 48}, {2304, 1152}}) {
    NormProblem p = random_norm(kRows, width, group, Dtype::float32, Dtype::bfloat16, 9);
    for (const GateForm form : kForms) {
      p.form = form;
      const Bytes all = run(GetParam(), p, 0, kRows, kAligned);
      for (std::int64_t r = 0; r < kRows; ++r)
        EXPECT_EQ(run(GetParam(), p, r, 1, kAligned), row_bits(all, static_cast<std::size_t>(width) * 2, r));
    }
  }
}

// Groups of less than a warp's threads, of one warp and of several, with vectors that only some threads have.
TEST_P(GatedNorm, AlignmentDoesNotShow) {
  for (const Dtype dtype : {Dtype::float32, Dtype::bfloat16, Dtype::float16})
    for (const Dtype y_dtype : {Dtype::float32, dtype})
      for (const auto& [width, group] : std::vector<std::pair<std::int64_t, std::int64_t>>{
               {24, 8}, {4096, 128}, {960, 320}, {2048, 1024}, {8192, 8192}}) {
        NormProblem p = random_norm(11, width, group, y_dtype, dtype, 12);
        for (const GateForm form : kForms) {
          p.form = form;
          EXPECT_EQ(run(GetParam(), p, 0, 11, kAligned), run(GetParam(), p, 0, 11, kUnaligned))
              << "form " << static_cast<int>(form) << ", groups of " << group;
        }
      }
}

// A gate of every size: the division has to hold from its least quotients to its largest.
TEST_P(GatedNorm, GatesOfEverySize) {
  NormProblem p = random_norm(1, 0, 8, Dtype::float32, Dtype::float32, 13);
  for (std::uint32_t bits = 0; bits < 0x10000U; bits += 7) {
    const auto stored = static_cast<std::uint16_t>(bits);
    const float z = storage::load(&stored, 0, Dtype::bfloat16);
    if (z >= -80.0F && z < 0x1p120F) p.z.push_back(z);  // below, exp(-z) leaves float32's range
  }
  p.z.resize(p.z.size() / 8 * 8);
  p.width = static_cast<std::int64_t>(p.z.size());
  p.y.assign(p.z.size(), 1.0F);
  p.form = GateForm::gate_only;
  for (const GateActivation activation : {GateActivation::silu, GateActivation::sigmoid}) {
    p.activation = activation;
    expect_close(p, decode_all(run(GetParam(), p, 0, 1, kAligned), p.dtype));
  }
}

// A gate that is not a number must show, whatever the activation.
TEST_P(GatedNorm, KeepsNaN) {
  NormProblem p = random_norm(2, 16, 8, Dtype::float32, Dtype::float32, 11);
  p.form = GateForm::gate_only;
  p.z[5] = std::nanf("");
  for (const GateActivation activation : {GateActivation::silu, GateActivation::sigmoid}) {
    p.activation = activation;
    const std::vector<float> out = decode_all(run(GetParam(), p, 0, 2), Dtype::float32);
    for (std::size_t i = 0; i < out.size(); ++i) EXPECT_EQ(std::isnan(out[i]), i == 5) << i;
  }
}

// A gate alone has no group: how a row is split into work must not show.
TEST_P(GatedNorm, GateAloneDoesNotDependOnTheGroup) {
  NormProblem p = random_norm(5, 96, 96, Dtype::float32, Dtype::float32, 10);
  p.form = GateForm::gate_only;
  const Bytes whole = run(GetParam(), p, 0, 5);
  p.group = 8;
  EXPECT_EQ(run(GetParam(), p, 0, 5), whole);
}

TEST(GatedNormArguments, Refusals) {
  DeviceBuffer memory(DeviceKind::cpu, 4096);
  const auto* floats = memory.data<float>();
  const Norm right{2, 24, 12, 1e-5F, floats, floats, 24, Dtype::float32, floats, 24, memory.data(), 24, Dtype::float32};
  const auto refusal = [](const Norm& norm) -> std::string {
    try {
      gated_norm({}, norm);
    } catch (const std::invalid_argument& error) {
      return error.what();
    }
    return "not refused";
  };
  Norm broken = right;
  broken.group_size = 10;
  EXPECT_EQ(refusal(broken), "gated_norm: width 24 must be a multiple of group_size, which is 10");
  broken = right;
  broken.weight = nullptr;
  EXPECT_EQ(refusal(broken), "gated_norm: weight is null");
}

}  // namespace
}  // namespace replayeval::testing
