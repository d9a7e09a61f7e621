// The float64 recurrence of one mixer, fed with what an arm's own recurrence saw.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "eval/executors/mamba2_executor.h"
#include "reference/mamba2.h"

namespace replayeval {

class GoldRecurrence {
 public:
  explicit GoldRecurrence(const Mamba2Mixer& mixer);

  // conv: [1, T, conv_dim], the convolved x | B | C; projected: [1, T, projection_size], of which dt is read.
  void decode(const at::Tensor& conv, const at::Tensor& projected);

  std::vector<double> state() const;                             // [num_heads, head_dim, state_size]
  const std::vector<double>& last_output() const { return y_; }  // [num_heads, head_dim], of the last token

 private:
  mamba2::Shape shape_;
  reference::Mamba2Recurrence recurrence_;
  std::vector<double> y_;
};

}  // namespace replayeval
