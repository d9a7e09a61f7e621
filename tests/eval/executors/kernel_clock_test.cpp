#include "eval/executors/kernel_clock.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "eval/executors/device.h"
#include "tests/kernels/on_device.h"

namespace replayeval {
namespace {

class KernelClockTest : public testing::OnDevice {};

TEST_P(KernelClockTest, SumsByArmAndKernel) {
  KernelClock clock(GetParam());
  const at::Tensor x = at::randn({64, 64}).to(torch_device(GetParam()));
  for (int i = 0; i < 5; ++i) {
    const KernelClock::Scope outer(&clock, "a", "outer");
    const KernelClock::Scope inner(&clock, "a", i % 2 == 0 ? "even" : "odd");
    at::mm(x, x);
  }
  const std::vector<KernelSeconds> totals = clock.totals();
  ASSERT_EQ(totals.size(), 3U);
  EXPECT_EQ(totals[0].kernel, "outer");
  EXPECT_EQ(totals[0].calls, 5);
  EXPECT_EQ(totals[1].calls, 3);
  EXPECT_EQ(totals[2].calls, 2);
  EXPECT_GT(totals[1].seconds, 0.0);
  EXPECT_GE(totals[0].seconds, totals[1].seconds + totals[2].seconds);
  EXPECT_EQ(clock.totals().front().seconds, totals.front().seconds);  // asking does not count twice
}

TEST_P(KernelClockTest, ManyScopesAreSettledAlongTheWay) {
  KernelClock clock(GetParam());
  for (int i = 0; i < 5000; ++i) const KernelClock::Scope scope(&clock, "", "empty");
  EXPECT_EQ(clock.totals().front().calls, 5000);
}

REPLAYEVAL_ON_EACH_DEVICE(KernelClockTest);

TEST(KernelClock, MeasuresSecondsOfWallClockOnTheCpu) {
  KernelClock clock(DeviceKind::cpu);
  {
    const KernelClock::Scope scope(&clock, "a", "sleep");
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
  }
  EXPECT_GE(clock.totals().front().seconds, 0.03);
  EXPECT_LT(clock.totals().front().seconds, 3.0);
}

TEST(KernelClock, ANullClockCostsNothing) { const KernelClock::Scope scope(nullptr, "a", "b"); }

}  // namespace
}  // namespace replayeval
