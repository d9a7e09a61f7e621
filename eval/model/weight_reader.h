// One stored tensor from a mapped shard to where the model wants it: converted, checked, a few pages at a time.
#pragma once

#include <ATen/core/Tensor.h>

#include "eval/checkpoint/checkpoint.h"

namespace replayeval {

// `file: tensor "name"`, as messages begin.
std::string place_of(const TensorView& view);

// How the bytes travel. `mapped` converts them straight from the mapped file: to the CPU. `staged` takes them through
// two buffers that page faults and copies to the device alternate on: to CUDA, where the buffers are page-locked.
enum class Transfer : std::uint8_t { mapped, staged };

// Writes the view's elements into `destination` (contiguous, of as many elements and any floating-point type). Stored
// as F32, BF16 or F16, or as F8_E4M3 with `scale` (float8_scales.h): then multiplied in float32 and rounded once.
// Throws CheckpointError naming file and tensor on another stored type, a float8 without scale, and on a NaN or
// infinity (naming the first). Beside the destination and the file's pages, which it lets go of as it goes, it holds a
// few MiB.
void read_weight(const Checkpoint& checkpoint, const TensorView& view, const TensorView* scale,
                 const at::Tensor& destination, Transfer transfer);
Transfer transfer_to(const at::Device& device);

}  // namespace replayeval
