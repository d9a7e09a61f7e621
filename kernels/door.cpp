#include "kernels/door.h"

#include <vector>

namespace replayeval {

void check_multiple(const Door& door, std::int64_t given, std::int64_t most, const char* name) {
  door.expect(given >= 8 && given <= most && given % 8 == 0, std::string(name) + " is " + std::to_string(given) +
                                                                 "; allowed: multiples of 8 from 8 to " +
                                                                 std::to_string(most));
}

void check_block(const Door& door, const DecodeBlock& block) {
  door.expect(block.batch >= 1, "batch is " + std::to_string(block.batch) + "; at least 1 is needed");
  door.expect(block.tokens >= 1, "tokens is " + std::to_string(block.tokens) + "; at least 1 is needed");
}

void check_slots(const Door& door, const Device& device, const DecodeBlock& block, std::int64_t slots) {
  door.expect(slots >= 1, "slots is " + std::to_string(slots) + "; at least 1 is needed");
  if (block.slots == nullptr) {
    door.expect(block.batch <= slots, "batch " + std::to_string(block.batch) +
                                          " without a slot map needs as many slots, "
                                          "there are " +
                                          std::to_string(slots));
    return;
  }
  if (device.kind != DeviceKind::cpu) return;
  std::vector<bool> taken(static_cast<std::size_t>(slots), false);
  for (std::int64_t row = 0; row < block.batch; ++row) {
    const std::int64_t slot = block.slots[row];
    if (slot < 0) continue;
    const std::string what = "row " + std::to_string(row) + " names slot " + std::to_string(slot);
    door.expect(slot < slots, what + "; there are " + std::to_string(slots));
    door.expect(!taken[static_cast<std::size_t>(slot)], what + ", which another row of the block names too");
    taken[static_cast<std::size_t>(slot)] = true;
  }
}

void check_cursors(const Door& door, const Device& device, const DecodeBlock& block, std::int64_t buffer_len,
                   const std::int32_t* cursors) {
  if (device.kind != DeviceKind::cpu) return;
  for (std::int64_t row = 0; row < block.batch; ++row) {
    const std::int64_t slot = block.slots == nullptr ? row : block.slots[row];
    if (slot < 0) continue;
    const std::int32_t cursor = cursors[slot];
    door.expect(cursor >= 0 && cursor < buffer_len,
                "the cursor of slot " + std::to_string(slot) + " is " + std::to_string(cursor) +
                    "; allowed: 0 to buffer_len - 1 = " + std::to_string(buffer_len - 1));
  }
}

void check_state(const Door& door, const State& state) {
  door.aligned(state.data, "the state");
  door.dtype(state.storage.dtype, "the state's dtype");
  door.expect(state.storage.overflow == Overflow::infinity || state.storage.overflow == Overflow::saturate,
              "the state's overflow is neither infinity nor saturate");
}

void check_buffer_len(const Door& door, std::int64_t buffer_len) {
  const auto most = static_cast<std::int64_t>(kMaxBufferLen);
  door.expect(buffer_len >= 1 && buffer_len <= most,
              "buffer_len is " + std::to_string(buffer_len) + "; allowed: 1 to " + std::to_string(most));
}

void check_form(const Door& door, std::int64_t buffer_len, Route route, Flush flush, Dtype ring_dtype) {
  check_buffer_len(door, buffer_len);
  door.expect(route == Route::output_only || route == Route::state_and_output,
              "route is neither output_only nor state_and_output");
  door.expect(flush == Flush::summed || flush == Flush::sequential, "flush is neither summed nor sequential");
  door.expect(ring_dtype == Dtype::float32 || ring_dtype == Dtype::bfloat16,
              "ring_dtype is " + std::string(dtype_name(ring_dtype)) + "; allowed: float32, bfloat16");
}

void check_device(const Device& device, const std::string& function) {
  if (device.kind == DeviceKind::cpu) return;
  const std::string name = function + ": ";
  if (device.kind != DeviceKind::cuda) throw std::invalid_argument(name + "the device is neither cpu nor cuda");
  if (!built_with_cuda()) {
    throw std::runtime_error(name + "a cuda device was asked for, but this program was built without CUDA");
  }
}

}  // namespace replayeval
