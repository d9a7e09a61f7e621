// Between LibTorch's words for devices and types and those of kernels/.
#pragma once

#include <ATen/core/Tensor.h>

#include "kernels/types.h"

namespace replayeval {

at::ScalarType scalar_type(Dtype dtype);
Dtype kernel_dtype(at::ScalarType type);  // throws std::invalid_argument on a type that kernels/ does not know

// Where tensors of this kind live. Throws std::runtime_error when the build or the machine has no such device.
at::Device torch_device(DeviceKind kind);

// The device of a kernel call on tensors that live on `device`: on CUDA with LibTorch's current stream, so that kernels
// and dense layers run in order.
Device kernel_device(const at::Device& device);

}  // namespace replayeval
