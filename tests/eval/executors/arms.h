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

inline std::vector<RingForm> ring_forms(const std::string& family) {
  if (family == "mamba2") return {RingForm::inputs};
  return {RingForm::inputs, RingForm::deltas};
}

// Both executors, every storage, ring form, route and flush that the family of mixers has.
inline std::vector<Arm> every_kind_of_arm(const std::string& family) {
  std::vector<Arm> arms;
  for (const Dtype state : {Dtype::float32, Dtype::bfloat16, Dtype::float16}) {
    arms.push_back(exact_arm("exact " + std::string(dtype_name(state)), state));
    for (const Dtype ring : {Dtype::float32, Dtype::bfloat16})
      for (const auto route : {Route::output_only, Route::state_and_output})
        for (const auto flush : {Flush::summed, Flush::sequential}) {
          Arm arm = replay_arm("replay", state, ring);
          arm.replay.route = route;
          arm.replay.flush = flush;
          for (const RingForm form : ring_forms(family)) {
            if (form == RingForm::deltas && flush == Flush::sequential) continue;
            arm.ring_form = form;
            arm.name = to_json(arm).dump();
            arms.push_back(arm);
          }
        }
  }
  return arms;
}

}  // namespace replayeval::testing
