// What `replayeval inspect` says of a checkpoint, as JSON.
#pragma once

#include <array>
#include <cstdint>
#include <nlohmann/json.hpp>

#include "eval/checkpoint/checkpoint.h"
#include "kernels/types.h"

namespace replayeval {

inline constexpr std::array<Dtype, 3> inspected_states = {Dtype::float32, Dtype::bfloat16, Dtype::float16};
inline constexpr std::array<Dtype, 2> inspected_rings = {Dtype::float32, Dtype::bfloat16};
inline constexpr std::array<std::int64_t, 7> inspected_buffer_lens = {1, 2, 4, 8, 16, 32, 64};
inline constexpr std::array<std::int64_t, 6> inspected_batches = {1, 8, 32, 64, 128, 256};

struct InspectOptions {
  std::int64_t context = 4096;                   // tokens of keys and values that a sequence holds
  std::int64_t memory = std::int64_t{80} << 30;  // bytes of a device that sequences are to fit in
  bool hash = true;                              // read all weights for the checkpoint's hash
};

// Works without weights, too. Throws CheckpointError.
nlohmann::ordered_json describe_checkpoint(const Checkpoint& checkpoint, const InspectOptions& options);

}  // namespace replayeval
