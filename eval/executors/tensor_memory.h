// Addresses inside tensors, as kernels want them.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace replayeval {

// The address of element `offset` of a tensor's first row.
inline void* at_element(const at::Tensor& tensor, std::int64_t offset = 0) {
  return static_cast<char*>(tensor.data_ptr()) + static_cast<std::size_t>(offset) * tensor.element_size();
}

inline const float* floats(const at::Tensor& tensor) {
  return tensor.defined() ? tensor.const_data_ptr<float>() : nullptr;
}

}  // namespace replayeval
