// What LibTorch's allocator holds on a device, and what the device has left.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace replayeval {

struct DeviceMemory {
  std::int64_t allocated = 0, peak = 0;  // bytes in tensors: now, and at most since the last reset_peak_memory()
  std::int64_t free = 0, total = 0;      // bytes of the device, all processes counted
};

// CUDA devices only. Throws c10::Error on others.
DeviceMemory device_memory(const at::Device& device);
void reset_peak_memory(const at::Device& device);
// Gives what the allocator keeps for reuse back to the device.
void release_cached_memory(const at::Device& device);

// Waits until everything launched on the device has run; nothing on the CPU.
void synchronise(const at::Device& device);

}  // namespace replayeval
