#include "eval/executors/mamba2_gold.h"

#include "eval/executors/gold_tensors.h"

namespace replayeval {
namespace {

reference::Mamba2Parameters parameters_of(const Mamba2Mixer& mixer) {
  reference::Mamba2Parameters parameters;
  parameters.num_heads = mixer.shape().num_heads;
  parameters.num_groups = mixer.shape().num_groups;
  parameters.head_dim = mixer.shape().head_dim;
  parameters.state_size = mixer.shape().state_size;
  parameters.A_log = vector_of(mixer.weights().A_log);
  parameters.D = vector_of(mixer.weights().D);
  parameters.dt_bias = vector_of(mixer.weights().dt_bias);
  parameters.dt_min = static_cast<double>(mixer.weights().dt_min);
  parameters.dt_max = static_cast<double>(mixer.weights().dt_max);
  return parameters;
}

}  // namespace

Mamba2Gold::Mamba2Gold(const Mamba2Mixer& mixer) : shape_(mixer.shape()), recurrence_(parameters_of(mixer)) {}

void Mamba2Gold::decode(const at::Tensor& conv, const at::Tensor& projected) {
  const at::Tensor inputs = one_sequence(conv), all = one_sequence(projected);
  const std::int64_t inner = shape_.num_heads * shape_.head_dim, group = shape_.num_groups * shape_.state_size;
  RowMajor y;
  for (std::int64_t t = 0; t < inputs.size(0); ++t)
    y = recurrence_.step(part_of(inputs, t, 0, shape_.num_heads, shape_.head_dim),
                         part_of(inputs, t, inner, shape_.num_groups, shape_.state_size),
                         part_of(inputs, t, inner + group, shape_.num_groups, shape_.state_size),
                         part_of(all, t, all.size(1) - shape_.num_heads, 1, shape_.num_heads).transpose());
  y_.clear();
  append(y, y_);
}

std::vector<double> Mamba2Gold::state() const {
  std::vector<double> values;
  for (std::int64_t head = 0; head < shape_.num_heads; ++head) append(recurrence_.state(head), values);
  return values;
}

}  // namespace replayeval
