#include "eval/comparator/gold_recurrence.h"

#include <ATen/ATen.h>

namespace replayeval {
namespace {

using RowMajor = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using ConstMap = Eigen::Map<const RowMajor>;

Eigen::VectorXd vector_of(const at::Tensor& tensor) {
  const at::Tensor values = tensor.to(at::kCPU, at::kDouble).contiguous();
  return Eigen::Map<const Eigen::VectorXd>(values.const_data_ptr<double>(), values.numel());
}

reference::Mamba2Parameters parameters_of(const Mamba2Mixer& mixer) {
  reference::Mamba2Parameters parameters;
  parameters.num_heads = mixer.shape.num_heads;
  parameters.num_groups = mixer.shape.num_groups;
  parameters.head_dim = mixer.shape.head_dim;
  parameters.state_size = mixer.shape.state_size;
  parameters.A_log = vector_of(mixer.A_log);
  parameters.D = vector_of(mixer.D);
  parameters.dt_bias = vector_of(mixer.dt_bias);
  parameters.dt_min = static_cast<double>(mixer.dt_min);
  parameters.dt_max = static_cast<double>(mixer.dt_max);
  return parameters;
}

}  // namespace

GoldRecurrence::GoldRecurrence(const Mamba2Mixer& mixer) : shape_(mixer.shape), recurrence_(parameters_of(mixer)) {}

void GoldRecurrence::decode(const at::Tensor& conv, const at::Tensor& projected) {
  const at::Tensor inputs = conv.select(0, 0).to(at::kCPU, at::kDouble).contiguous();
  const std::int64_t projection = projected.size(-1);
  const at::Tensor dt = projected.select(0, 0)
                            .narrow(-1, projection - shape_.num_heads, shape_.num_heads)
                            .to(at::kCPU, at::kDouble)
                            .contiguous();
  const std::int64_t x_size = shape_.num_heads * shape_.head_dim;
  const std::int64_t group_size = shape_.num_groups * shape_.state_size;
  RowMajor y;
  for (std::int64_t t = 0; t < inputs.size(0); ++t) {
    const double* row = inputs.const_data_ptr<double>() + t * inputs.size(1);
    const ConstMap x(row, shape_.num_heads, shape_.head_dim);
    const ConstMap B(row + x_size, shape_.num_groups, shape_.state_size);
    const ConstMap C(row + x_size + group_size, shape_.num_groups, shape_.state_size);
    const Eigen::Map<const Eigen::VectorXd> dt_raw(dt.const_data_ptr<double>() + t * shape_.num_heads,
                                                   shape_.num_heads);
    y = recurrence_.step(x, B, C, dt_raw);
  }
  y_.assign(y.data(), y.data() + y.size());
}

std::vector<double> GoldRecurrence::state() const {
  std::vector<double> values;
  values.reserve(static_cast<std::size_t>(shape_.num_heads * shape_.head_dim * shape_.state_size));
  for (std::int64_t head = 0; head < shape_.num_heads; ++head) {
    const RowMajor state = recurrence_.state(head);
    values.insert(values.end(), state.data(), state.data() + state.size());
  }
  return values;
}

}  // namespace replayeval
