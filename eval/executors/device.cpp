#include "eval/executors/device.h"

#include <ATen/Context.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <stdexcept>
#include <string>

namespace replayeval {

at::ScalarType scalar_type(Dtype dtype) {
  switch (dtype) {
    case Dtype::bfloat16:
      return at::kBFloat16;
    case Dtype::float16:
      return at::kHalf;
    case Dtype::float32:
      break;
  }
  return at::kFloat;
}

Dtype kernel_dtype(at::ScalarType type) {
  switch (type) {
    case at::kFloat:
      return Dtype::float32;
    case at::kBFloat16:
      return Dtype::bfloat16;
    case at::kHalf:
      return Dtype::float16;
    default:
      throw std::invalid_argument(std::string("tensor type ") + c10::toString(type) +
                                  "; expected Float, BFloat16 or Half");
  }
}

at::Device torch_device(DeviceKind kind) {
  if (kind == DeviceKind::cpu) return at::Device(at::kCPU);
  if (!built_with_cuda())
    throw std::runtime_error("device cuda: this build has no CUDA kernels (no nvcc when it was configured)");
  if (!at::Context::hasCUDA()) throw std::runtime_error("device cuda: no usable GPU found by LibTorch on this machine");
  at::globalContext().lazyInitDevice(at::kCUDA);  // what asks the allocator before the first tensor needs it
  return at::Device(at::kCUDA, 0);
}

Device kernel_device(const at::Device& device) {
  if (device.is_cpu()) return {};
  const c10::impl::VirtualGuardImpl cuda(at::kCUDA);
  return {DeviceKind::cuda, cuda.getStream(device).native_handle()};
}

}  // namespace replayeval
