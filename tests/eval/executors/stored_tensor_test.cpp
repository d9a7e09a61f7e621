#include "eval/executors/stored_tensor.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "eval/executors/device.h"
#include "kernels/storage_scalar.h"
#include "tests/kernels/on_device.h"

namespace replayeval {
namespace {

class StoredTensor : public testing::OnDevice {};

// Ordinary values, ties, both ends of each type's range, and what is no number.
std::vector<float> values() {
  const float infinity = std::numeric_limits<float>::infinity();
  std::vector<float> all = {0.0F,     -0.0F,     1.0F,  1.00390625F, 3.0e38F,   3.395e38F, 65504.0F, 65519.9F,
                            65520.0F, -70000.F,  1e-5F, 6.0e-8F,     2.0e-8F,   1e-39F,    -1e-41F,  1e-45F,
                            infinity, -infinity, NAN,   0.3333F,     -2.71828F, 0x1.01p0F, 0x1.03p0F};
  for (int i = 0; i < 200; ++i) all.push_back(std::ldexp(1.0F + 0.013F * static_cast<float>(i), i - 100));
  return all;
}

TEST_P(StoredTensor, IsWhatTheKernelsStore) {
  const std::vector<float> list = values();
  const at::Tensor tensor = at::tensor(list, at::kFloat).to(torch_device(GetParam()));
  for (const Dtype dtype : {Dtype::float32, Dtype::bfloat16, Dtype::float16})
    for (const Overflow overflow : {Overflow::infinity, Overflow::saturate}) {
      const Storage storage{dtype, overflow};
      const at::Tensor found = stored(tensor, storage).to(at::kCPU, at::kFloat);
      StorageCounts expected;
      for (std::size_t i = 0; i < list.size(); ++i) {
        storage::count(list[i], storage, expected);
        const float value = found[static_cast<std::int64_t>(i)].item<float>(), one = storage::rounded(list[i], storage);
        EXPECT_TRUE(value == one || (std::isnan(value) && std::isnan(one))) << list[i] << " became " << value;
      }
      const at::Tensor counts = odd_stores(tensor, storage).cpu();
      EXPECT_EQ(counts[0].item<std::int64_t>(), static_cast<std::int64_t>(expected.saturated));
      EXPECT_EQ(counts[1].item<std::int64_t>(), static_cast<std::int64_t>(expected.subnormal));
      EXPECT_EQ(counts[2].item<std::int64_t>(), static_cast<std::int64_t>(expected.non_finite));
    }
}

REPLAYEVAL_ON_EACH_DEVICE(StoredTensor);

}  // namespace
}  // namespace replayeval
