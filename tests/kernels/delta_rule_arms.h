// The arm kinds that tests go through, and the families on each device.
#pragma once

#include "tests/kernels/delta_rule_decoder.h"
#include "tests/kernels/on_device.h"

#include <tuple>
#include <vector>

namespace replayeval::testing {

inline std::vector<DeltaArm> exact_delta_arms() {
  std::vector<DeltaArm> arms;
  for (const Dtype dtype : {Dtype::float32, Dtype::bfloat16, Dtype::float16}) {
    arms.push_back({false, {}, {dtype, Overflow::infinity}});
  }
  return arms;
}

// Both ring forms, both routes, the flushes that a ring form has, every state and ring storage.
inline std::vector<DeltaArm> replay_delta_arms(std::int64_t buffer_len) {
  std::vector<DeltaArm> arms;
  for (const auto ring_form : {delta_rule::RingForm::deltas, delta_rule::RingForm::inputs}) {
    for (const auto flush : {Flush::summed, Flush::sequential}) {
      if (ring_form == delta_rule::RingForm::deltas && flush == Flush::sequential) continue;
      for (const auto route : {Route::output_only, Route::state_and_output}) {
        for (const Dtype state : {Dtype::float32, Dtype::bfloat16, Dtype::float16}) {
          for (const Dtype ring : {Dtype::float32, Dtype::bfloat16}) {
            arms.push_back({true, {buffer_len, ring_form, route, flush, ring}, {state, Overflow::infinity}});
          }
        }
      }
    }
  }
  return arms;
}

inline std::vector<DeltaArm> every_delta_arm(std::int64_t buffer_len) {
  std::vector<DeltaArm> arms = exact_delta_arms();
  for (const DeltaArm& arm : replay_delta_arms(buffer_len)) arms.push_back(arm);
  return arms;
}

class DeltaOnDevice : public ::testing::TestWithParam<std::tuple<DeviceKind, delta_rule::Family>> {
 protected:
  void SetUp() override {
    const std::string reason = why_unavailable(device());
    if (!reason.empty()) GTEST_SKIP() << reason;
  }
  static DeviceKind device() { return std::get<0>(GetParam()); }
  static delta_rule::Family family() { return std::get<1>(GetParam()); }
};

#define REPLAYEVAL_DELTA_ON_EACH_DEVICE(Suite)                                                                 \
  INSTANTIATE_TEST_SUITE_P(Cpu, Suite,                                                                         \
                           ::testing::Combine(::testing::Values(::replayeval::DeviceKind::cpu),                \
                                              ::testing::Values(::replayeval::delta_rule::Family::gated_delta, \
                                                                ::replayeval::delta_rule::Family::kda)),       \
                           ::replayeval::testing::family_name);                                                \
  INSTANTIATE_TEST_SUITE_P(Cuda, Suite,                                                                        \
                           ::testing::Combine(::testing::Values(::replayeval::DeviceKind::cuda),               \
                                              ::testing::Values(::replayeval::delta_rule::Family::gated_delta, \
                                                                ::replayeval::delta_rule::Family::kda)),       \
                           ::replayeval::testing::family_name)

inline std::string family_name(const ::testing::TestParamInfo<std::tuple<DeviceKind, delta_rule::Family>>& info) {
  return std::get<1>(info.param) == delta_rule::Family::kda ? "kda" : "gated_delta";
}

}  // namespace replayeval::testing
