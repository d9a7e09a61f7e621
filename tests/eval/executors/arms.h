// The arm kinds that tests go through.
#pragma once

#include <vector>

#include "eval/executors/arm.h"

namespace replayeval::testing {

inline Arm exact_arm(const std::string& name, Dtype state = Dtype::float32) {
  Arm arm;
  arm.name = name;
  arm.state_storage.dtype = state;
  return arm;
}

inline Arm replay_arm(const std::string& name, Dtype state, Dtype ring, std::int64_t buffer_len = 5) {
  Arm arm = exact_arm(name, state);
  arm.executor = Executor::replay;
  arm.replay.buffer_len = buffer_len;
  arm.replay.ring_dtype = ring;
  return arm;
}

// Both executors, every storage, both routes and flushes.
inline std::vector<Arm> every_kind_of_arm() {
  std::vector<Arm> arms;
  for (const Dtype state : {Dtype::float32, Dtype::bfloat16, Dtype::float16}) {
    arms.push_back(exact_arm("exact " + std::string(dtype_name(state)), state));
    for (const Dtype ring : {Dtype::float32, Dtype::bfloat16})
      for (const auto route : {mamba2::Route::output_only, mamba2::Route::state_and_output})
        for (const auto flush : {mamba2::Flush::summed, mamba2::Flush::sequential}) {
          Arm arm = replay_arm("replay", state, ring);
          arm.replay.route = route;
          arm.replay.flush = flush;
          arm.name = to_json(arm).dump();
          arms.push_back(arm);
        }
  }
  return arms;
}

}  // namespace replayeval::testing
