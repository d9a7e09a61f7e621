// The float64 recurrence of one mixer and one sequence, fed with what an arm's own recurrence saw.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <vector>

namespace replayeval {

class GoldRecurrence {
 public:
  virtual ~GoldRecurrence() = default;
  virtual std::unique_ptr<GoldRecurrence> clone() const = 0;

  // conv: [1, T, conv_dim] and projected: [1, T, projection], as Mixer::run() gave and got them.
  virtual void decode(const at::Tensor& conv, const at::Tensor& projected) = 0;

  virtual std::vector<double> state() const = 0;               // [num_heads, state_rows, state_columns]
  virtual const std::vector<double>& last_output() const = 0;  // [num_heads, state_rows], of the last token
};

}  // namespace replayeval
