// The gated group RMS norm: against a float64 computation, and row by row independent.
#include "kernels/mamba2/gated_norm.h"
#include "kernels/storage_scalar.h"
#include "tests/kernels/on_device.h"

#include <cmath>
#include <random>

namespace replayeval::testing {
namespace {

struct NormProblem {
  std::int64_t rows = 0, width = 0, group = 0;
  Dtype y_dtype = Dtype::float32, dtype = Dtype::float32;
  std::vector<float> y, z, weight;
};

NormProblem random_norm(std::int64_t rows, std::int64_t width, std::int64_t group, Dtype y_dtype, Dtype dtype,
                        unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  NormProblem p{rows, width, group, y_dtype, dtype, {}, {}, {}};
  for (std::int64_t i = 0; i < rows * width; ++i) {
    p.y.push_back(storage::rounded(4.0F * normal(random), {y_dtype, Overflow::infinity}));
    p.z.push_back(storage::rounded(2.0F * normal(random), {dtype, Overflow::infinity}));
  }
  for (std::int64_t i = 0; i < width; ++i) p.weight.push_back(normal(random));
  return p;
}

// Rows first..first+rows of the problem in one call; the outputs' bits.
Bytes run(DeviceKind kind, const NormProblem& p, std::int64_t first, std::int64_t rows) {
  const auto upload = [&](const std::vector<float>& values, Dtype dtype, std::int64_t stride) {
    DeviceBuffer buffer(kind, static_cast<std::size_t>(rows * stride) * dtype_size(dtype));
    for (std::int64_t r = 0; r < rows; ++r) {
      const auto start = values.begin() + (first + r) * p.width;
      buffer.upload(encode_all({start, start + p.width}, dtype),
                    static_cast<std::size_t>(r * stride) * dtype_size(dtype));
    }
    return buffer;
  };
  const std::int64_t y_stride = p.width + 1;
  const std::int64_t z_stride = p.width + 3;
  DeviceBuffer y = upload(p.y, p.y_dtype, y_stride);
  DeviceBuffer z = upload(p.z, p.dtype, z_stride);
  DeviceBuffer weight(kind, p.weight.size() * sizeof(float));
  weight.upload_values(p.weight);
  DeviceBuffer out(kind, static_cast<std::size_t>(rows * p.width) * dtype_size(p.dtype));
  mamba2::gated_norm({kind, nullptr}, {rows, p.width, p.group, 1e-5F, weight.data<float>(), y.data(), y_stride,
                                       p.y_dtype, z.data(), z_stride, out.data(), p.width, p.dtype});
  synchronize(kind);
  return out.download();
}

class GatedNorm : public OnDevice {};
REPLAYEVAL_ON_EACH_DEVICE(GatedNorm);

TEST_P(GatedNorm, MatchesFloat64) {
  unsigned seed = 0;
  for (const Dtype dtype : {Dtype::float32, Dtype::bfloat16, Dtype::float16}) {
    for (const Dtype y_dtype : {Dtype::float32, Dtype::bfloat16}) {
      for (const auto& sizes :
           std::vector<std::pair<std::int64_t, std::int64_t>>{{8, 8}, {30, 10}, {768, 384}, {1000, 1000}, {5, 1}}) {
        const std::int64_t width = sizes.first;
        const std::int64_t group = sizes.second;
        const NormProblem p = random_norm(3, width, group, y_dtype, dtype, ++seed);
        const std::vector<float> out = decode_all(run(GetParam(), p, 0, 3), dtype);
        const double unit = dtype == Dtype::float32 ? 0.0 : dtype == Dtype::float16 ? 0x1p-11 : 0x1p-8;
        for (std::int64_t r = 0; r < 3; ++r) {
          for (std::int64_t g = 0; g < width; g += group) {
            const auto h = [&](std::int64_t i) {
              const auto at = static_cast<std::size_t>(r * width + i);
              return p.y[at] * static_cast<double>(p.z[at]) / (1.0 + std::exp(-static_cast<double>(p.z[at])));
            };
            double squares = 0.0;
            for (std::int64_t i = g; i < g + group; ++i) squares += h(i) * h(i);
            const double inverse = 1.0 / std::sqrt(squares / static_cast<double>(group) + 1e-5);
            for (std::int64_t i = g; i < g + group; ++i) {
              const double expected = p.weight[static_cast<std::size_t>(i)] * h(i) * inverse;
              const double allowed =
                  (32 * 0x1p-24 + 1.01 * unit) * std::fabs(expected) + (dtype == Dtype::float16 ? 0x1p-25 : 0x1p-126);
              ASSERT_NEAR(out[static_cast<std::size_t>(r * width + i)], expected, allowed)
                  << "row " << r << " column " << i;
            }
          }
        }
      }
    }
  }
}

TEST_P(GatedNorm, ARowDoesNotKnowItsNeighbours) {
  const NormProblem p = random_norm(37, 96, 48, Dtype::float32, Dtype::bfloat16, 9);
  const Bytes all = run(GetParam(), p, 0, 37);
  const std::size_t row_bytes = 96 * 2;
  for (std::int64_t r = 0; r < 37; ++r) {
    const auto start = all.begin() + static_cast<std::ptrdiff_t>(static_cast<std::size_t>(r) * row_bytes);
    EXPECT_EQ(run(GetParam(), p, r, 1), Bytes(start, start + static_cast<std::ptrdiff_t>(row_bytes)));
  }
}

}  // namespace
}  // namespace replayeval::testing
