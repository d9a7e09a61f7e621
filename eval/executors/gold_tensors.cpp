#include "eval/executors/gold_tensors.h"

#include <ATen/ATen.h>

namespace replayeval {

Eigen::VectorXd vector_of(const at::Tensor& tensor) {
  const at::Tensor values = tensor.to(at::kCPU, at::kDouble).contiguous();
  return Eigen::Map<const Eigen::VectorXd>(values.const_data_ptr<double>(), values.numel());
}

at::Tensor one_sequence(const at::Tensor& rows) { return rows.select(0, 0).to(at::kCPU, at::kDouble).contiguous(); }

Eigen::Map<const RowMajor> part_of(const at::Tensor& rows, std::int64_t t, std::int64_t begin, Eigen::Index height,
                                   Eigen::Index width) {
  return {rows.const_data_ptr<double>() + t * rows.size(1) + begin, height, width};
}

void append(const RowMajor& matrix, std::vector<double>& values) {
  values.insert(values.end(), matrix.data(), matrix.data() + matrix.size());
}

}  // namespace replayeval
