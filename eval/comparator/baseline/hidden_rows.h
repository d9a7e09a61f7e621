// Final hidden states of scored tokens, as a portable baseline keeps them.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/types.h"

namespace replayeval {

struct HiddenRows {
  Dtype dtype = Dtype::float32;
  std::int64_t arms = 0, hidden_size = 0;
  std::vector<std::byte> bytes;  // [tokens, arms, hidden_size] of dtype

  std::size_t row_bytes() const { return static_cast<std::size_t>(arms * hidden_size) * dtype_size(dtype); }
  std::size_t tokens() const { return bytes.size() / row_bytes(); }
  // hidden: [arms, tokens, hidden_size], any float type and device; rounded to dtype, to nearest even.
  void append(const at::Tensor& hidden);
};

}  // namespace replayeval
