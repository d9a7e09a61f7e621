#include "eval/executors/arm.h"

#include <stdexcept>

namespace replayeval {
namespace {

[[noreturn]] void refuse(const Arm& arm, const std::string& field, const std::string& value,
                         const std::string& expected) {
  throw std::invalid_argument("arm \"" + arm.name + "\": " + field + " " + value + "; expected " + expected);
}

void check_storage(const Arm& arm, const Storage& storage) {
  if (dtype_size(storage.dtype) == 0)
    refuse(arm, "state_storage.dtype", std::to_string(static_cast<int>(storage.dtype)), "float32, bfloat16 or float16");
  if (!parse_overflow(overflow_name(storage.overflow)))
    refuse(arm, "state_storage.overflow", std::to_string(static_cast<int>(storage.overflow)), "infinity or saturate");
}

void check_replay(const Arm& arm) {
  const Replay& form = arm.replay;
  if (form.buffer_len < 1 || form.buffer_len > 64)
    refuse(arm, "buffer_len", std::to_string(form.buffer_len), "1 to 64");
  if (form.ring_dtype != Dtype::float32 && form.ring_dtype != Dtype::bfloat16)
    refuse(arm, "ring_storage", std::string(dtype_name(form.ring_dtype)), "float32 or bfloat16");
  if (arm.ring_form == RingForm::deltas && form.flush == Flush::sequential)
    refuse(arm, "flush", "sequential with ring_form deltas",
           "summed, because a sequential flush re-runs the recurrence over an inputs ring");
}

}  // namespace

std::string_view executor_name(Executor executor) { return executor == Executor::exact ? "exact" : "replay"; }

std::string_view ring_form_name(RingForm form) { return form == RingForm::inputs ? "inputs" : "deltas"; }

std::string_view route_name(Route route) { return route == Route::output_only ? "output_only" : "state_and_output"; }

std::string_view flush_name(Flush flush) { return flush == Flush::summed ? "summed" : "sequential"; }

bool same_arithmetic(const Arm& a, const Arm& b) {
  if (a.executor != b.executor || a.state_storage.dtype != b.state_storage.dtype ||
      a.state_storage.overflow != b.state_storage.overflow)
    return false;
  if (a.executor == Executor::exact) return true;  // the ring's settings mean nothing then
  return a.ring_form == b.ring_form && a.replay.buffer_len == b.replay.buffer_len && a.replay.route == b.replay.route &&
         a.replay.flush == b.replay.flush && a.replay.ring_dtype == b.replay.ring_dtype;
}

void validate(const Arm& arm) {
  if (arm.name.empty()) refuse(arm, "name", "is empty", "a name");
  check_storage(arm, arm.state_storage);
  if (arm.executor == Executor::replay) check_replay(arm);
}

nlohmann::json to_json(const Arm& arm) {
  nlohmann::json json = {
      {"name", arm.name},
      {"executor", executor_name(arm.executor)},
      {"state_storage",
       {{"dtype", dtype_name(arm.state_storage.dtype)}, {"overflow", overflow_name(arm.state_storage.overflow)}}}};
  if (arm.executor == Executor::exact) return json;
  json["ring_form"] = ring_form_name(arm.ring_form);
  json["ring_storage"] = dtype_name(arm.replay.ring_dtype);
  json["buffer_len"] = arm.replay.buffer_len;
  json["route"] = route_name(arm.replay.route);
  json["flush"] = flush_name(arm.replay.flush);
  return json;
}

}  // namespace replayeval
