// An arm: one way to run the state-space layers. All arms of a run decode the same tokens side by side.
#pragma once

#include <nlohmann/json.hpp>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/mamba2/mamba2.h"

namespace replayeval {

enum class Executor : std::uint8_t { exact, replay };
enum class RingForm : std::uint8_t { inputs, deltas };  // deltas belong to the delta-rule family
enum class Mode : std::uint8_t { stepwise, teacher_forced };

// As configurations and results spell them: "exact", "inputs", "output_only", "summed", ...
std::string_view executor_name(Executor executor);
std::string_view ring_form_name(RingForm form);
std::string_view route_name(mamba2::Route route);
std::string_view flush_name(mamba2::Flush flush);

struct Arm {
  std::string name;
  Executor executor = Executor::exact;
  Storage state_storage;
  // Replay only:
  RingForm ring_form = RingForm::inputs;
  mamba2::ReplayForm replay;
  friend bool same_arithmetic(const Arm& a, const Arm& b);  // equal in all but name: an A/A pair
};

// Throws std::invalid_argument naming the arm, the field, the value and what is allowed (buffer_len 0, a sequential
// flush of a deltas ring, an unknown dtype ...).
void validate(const Arm& arm);

// The arm as results.json spells it: name, executor, state_storage {dtype, overflow}, and for replay ring_form,
// ring_storage, buffer_len, route, flush.
nlohmann::json to_json(const Arm& arm);

}  // namespace replayeval
