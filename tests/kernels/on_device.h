// Tests written once and run as Cpu/… and, where there is a GPU, as Cuda/….
#pragma once

#include "kernels/types.h"
#include "tests/kernels/device_buffer.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

namespace replayeval::testing {

class OnDevice : public ::testing::TestWithParam<DeviceKind> {
 protected:
  void SetUp() override {
    const std::string reason = why_unavailable(GetParam());
    if (!reason.empty()) GTEST_SKIP() << reason;
  }
};

// The whole sweep instead of a sample of it.
inline bool full_sweep() {
  const char* value = std::getenv("REPLAYEVAL_FULL_SWEEP");
  return value != nullptr && std::string(value) == "1";
}

#define REPLAYEVAL_ON_EACH_DEVICE(Suite)                                                   \
  INSTANTIATE_TEST_SUITE_P(Cpu, Suite, ::testing::Values(::replayeval::DeviceKind::cpu),   \
                           [](const auto&) { return std::string("cpu"); });                \
  INSTANTIATE_TEST_SUITE_P(Cuda, Suite, ::testing::Values(::replayeval::DeviceKind::cuda), \
                           [](const auto&) { return std::string("cuda"); })

}  // namespace replayeval::testing
