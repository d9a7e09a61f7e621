#include "eval/model/device_plan.h"

#include <gtest/gtest.h>

#include <stdexcept>

#include "tests/eval/checkpoint/expect_error.h"

namespace replayeval {
namespace {

using Devices = std::vector<std::size_t>;

std::vector<DeviceBudget> budgets(const std::vector<std::int64_t>& bytes) {
  std::vector<DeviceBudget> all;
  for (std::size_t i = 0; i < bytes.size(); ++i) all.push_back({"cuda:" + std::to_string(i), bytes[i]});
  return all;
}

TEST(DevicePlan, OneDeviceHoldsAll) {
  const DevicePlan plan = plan_devices({10, {20, 20, 20}, 10}, budgets({80}), Spread::all);
  EXPECT_EQ(plan.layers, (Devices{0, 0, 0}));
  EXPECT_EQ(plan.used, (std::vector<std::int64_t>{80}));
}

TEST(DevicePlan, EqualDevicesAreFilledEvenly) {
  const DevicePlan plan = plan_devices({20, {10, 10, 10, 10, 10, 10}, 20}, budgets({1000, 1000}), Spread::all);
  EXPECT_EQ(plan.embeddings, 0U);
  EXPECT_EQ(plan.layers, (Devices{0, 0, 0, 1, 1, 1}));
  EXPECT_EQ(plan.head, 1U);
  EXPECT_EQ(plan.used, (std::vector<std::int64_t>{50, 50}));
}

TEST(DevicePlan, UnequalDevicesAreFilledInProportion) {
  const DevicePlan plan = plan_devices({0, {10, 10, 10, 10, 10, 10, 10, 10}, 0}, budgets({30, 90}), Spread::all);
  EXPECT_EQ(plan.layers, (Devices{0, 0, 1, 1, 1, 1, 1, 1}));
  EXPECT_EQ(plan.used, (std::vector<std::int64_t>{20, 60}));
}

TEST(DevicePlan, LayersNeverGoBackAndSkipADeviceThatIsTooSmall) {
  const DevicePlan plan = plan_devices({40, {50, 50, 50}, 40}, budgets({100, 45, 150}), Spread::all);
  EXPECT_EQ(plan.embeddings, 0U);
  EXPECT_EQ(plan.layers, (Devices{0, 2, 2}));
  EXPECT_EQ(plan.head, 2U);
  EXPECT_EQ(plan.used, (std::vector<std::int64_t>{90, 0, 140}));
}

TEST(DevicePlan, FewestLeavesDevicesOut) {
  const PartBytes parts = {10, {10, 10, 10, 10}, 10};
  EXPECT_EQ(plan_devices(parts, budgets({60, 60, 60}), Spread::fewest).used, (std::vector<std::int64_t>{60, 0, 0}));
  EXPECT_EQ(plan_devices(parts, budgets({59, 60, 60}), Spread::fewest).used, (std::vector<std::int64_t>{30, 30, 0}));
  EXPECT_EQ(plan_devices(parts, budgets({60, 60, 60}), Spread::all).used, (std::vector<std::int64_t>{20, 20, 20}));
}

TEST(DevicePlan, SaysWhatIsMissing) {
  const std::int64_t gib = std::int64_t{1} << 30;
  testing::expect_error<std::runtime_error>(
      [&] {
        plan_devices({gib, {3 * gib, 3 * gib}, gib}, budgets({2 * gib, 4 * gib}), Spread::all);
      },
      {"need 8.00 GiB (8589934592 bytes)", "largest part 3.00 GiB", "2.00 GiB on cuda:0", "4.00 GiB on cuda:1"});
  EXPECT_THROW(plan_devices({1, {}, 1}, {}, Spread::all), std::invalid_argument);
}

}  // namespace
}  // namespace replayeval
