#include "eval/comparator/baseline/hidden_rows.h"

#include <ATen/ATen.h>

#include "eval/executors/device.h"

namespace replayeval {

void HiddenRows::append(const at::Tensor& hidden) {
  TORCH_INTERNAL_ASSERT(hidden.dim() == 3 && hidden.size(0) == arms && hidden.size(2) == hidden_size);
  const at::Tensor rows = hidden.transpose(0, 1).to(at::kCPU, scalar_type(dtype)).contiguous();
  const auto* first = static_cast<const std::byte*>(rows.const_data_ptr());
  bytes.insert(bytes.end(), first, first + rows.nbytes());
}

}  // namespace replayeval
