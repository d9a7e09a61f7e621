// What the decode calls of every recurrence family share: which sequences, which state, where the output goes.
#pragma once

#include "kernels/types.h"

namespace replayeval {

enum class Route : std::uint8_t { output_only, state_and_output };
enum class Flush : std::uint8_t { summed, sequential };
// What a replay ring keeps of a token: the recurrence's inputs, or vectors computed from them
// (delta_rule/delta_rule.h).
enum class RingForm : std::uint8_t { inputs, deltas };

inline constexpr std::size_t kMaxBufferLen = 64;

// Which sequences and how many tokens each. Row b of the inputs belongs to slot slots[b] of the caches; null means
// slot b. A negative slot marks a padded row: its y becomes zero and no cache is touched. Slots must be distinct.
struct DecodeBlock {
  std::int64_t batch = 0;
  std::int64_t tokens = 0;              // per sequence
  const std::int32_t* slots = nullptr;  // [batch], on the call's device
};

struct State {
  void* data = nullptr;  // [slots, heads, rows, columns] as the family's Shape says, storage.dtype
  Storage storage;
  std::int64_t slots = 0;
  StorageCounts* counts = nullptr;  // optional, on the call's device
};

struct Output {
  void* y = nullptr;  // [batch * tokens, heads, rows of the state]; row r at y + r * y_stride (in elements)
  std::int64_t y_stride = 0;
  Dtype dtype = Dtype::float32;
};

}  // namespace replayeval
