// State error of every arm, layer by layer, at chosen positions of sampled sequences, at three depths (design: numerics
// contract):
//   local       the arm is fed the baseline's mixer inputs, so only this layer's storage differs
//   propagated  each arm on its own stream
//   gold        against the float64 recurrence on the inputs that the arm itself saw
// The baseline's state is the truth of the first two. A replay arm's state is the one its checkpoint and ring stand
// for.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "eval/comparator/run_config.h"
#include "eval/model/model.h"
#include "reports/results.h"

namespace replayeval {

class StateProbe {
 public:
  // positions: ascending, >= 1: after how many tokens of a sequence the states are looked at.
  // `model` must outlive the probe.
  StateProbe(const Model& model, std::vector<Arm> arms, std::size_t baseline, std::vector<std::int64_t> positions,
             std::vector<ErrorDepth> depths);
  ~StateProbe();

  // Decodes one sequence, ids [1, T] int64 with T >= the last position, under all arms. Beside the model's own memory
  // it keeps one more set of caches an arm and depth, and the mixer inputs of one layer between two positions.
  void add(const at::Tensor& ids);

  // Pooled over the sequences added; by arm, depth, layer, position. Norms pool squared errors over sequences.
  std::vector<reports::StateError> rows() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace replayeval
