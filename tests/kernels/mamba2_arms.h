// The arm kinds that tests go through.
#pragma once

#include "tests/kernels/mamba2_decoder.h"

#include <vector>

namespace replayeval::testing {

inline std::vector<Mamba2Arm> exact_arms() {
  std::vector<Mamba2Arm> arms;
  for (const Dtype dtype : {Dtype::float32, Dtype::bfloat16, Dtype::float16}) {
    arms.push_back({false, {}, {dtype, Overflow::infinity}});
  }
  return arms;
}

// Both routes, both flushes, every state and ring storage.
inline std::vector<Mamba2Arm> replay_arms(std::int64_t buffer_len) {
  std::vector<Mamba2Arm> arms;
  for (const auto route : {mamba2::Route::output_only, mamba2::Route::state_and_output}) {
    for (const auto flush : {mamba2::Flush::summed, mamba2::Flush::sequential}) {
      for (const Dtype state : {Dtype::float32, Dtype::bfloat16, Dtype::float16}) {
        for (const Dtype ring : {Dtype::float32, Dtype::bfloat16}) {
          arms.push_back({true, {buffer_len, route, flush, ring}, {state, Overflow::infinity}});
        }
      }
    }
  }
  return arms;
}

inline std::vector<Mamba2Arm> every_arm(std::int64_t buffer_len) {
  std::vector<Mamba2Arm> arms = exact_arms();
  for (const Mamba2Arm& arm : replay_arms(buffer_len)) arms.push_back(arm);
  return arms;
}

}  // namespace replayeval::testing
