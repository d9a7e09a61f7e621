// An arm: one way to run the state-space layers. All arms of a run decode the same tokens side by side.
#pragma once

#include <nlohmann/json.hpp>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/decode.h"

namespace replayeval {

enum class Executor : std::uint8_t { exact, replay };
enum class Mode : std::uint8_t { stepwise, teacher_forced };

// As configurations and results spell them: "exact", "inputs", "output_only", "summed", ...
std::string_view executor_name(Executor executor);
std::string_view ring_form_name(RingForm form);
std::string_view route_name(Route route);
std::string_view flush_name(Flush flush);

// What the ReplayForm of every family has.
struct Replay {
  std::int64_t buffer_len = 16;  // 1..64
  Route route = Route::output_only;
  Flush flush = Flush::summed;
  Dtype ring_dtype = Dtype::float32;  // float32 or bfloat16
};

struct Arm {
  std::string name;
  Executor executor = Executor::exact;
  Storage state_storage;
  // Replay only:
  RingForm ring_form = RingForm::inputs;  // deltas belong to the delta-rule family
  Replay replay;
  friend bool same_arithmetic(const Arm& a, const Arm& b);  // equal in all but name: an A/A pair
};

// Throws std::invalid_argument naming the arm, the field, the value and what is allowed (buffer_len 0, a sequential
// flush of a deltas ring, an unknown dtype ...).
void validate(const Arm& arm);

// The arm as results.json spells it: name, executor, state_storage {dtype, overflow}, and for replay ring_form,
// ring_storage, buffer_len, route, flush.
nlohmann::json to_json(const Arm& arm);

}  // namespace replayeval
