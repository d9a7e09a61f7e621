// The Gated DeltaNet recurrence in float64, written for reading: the truth that kernels are tested against, and the
// gold executor of the state-error metrics.
#pragma once

#include "reference/delta_rule.h"

namespace replayeval::reference {

struct GatedDeltaParameters {
  DeltaShape shape;
  Eigen::VectorXd A_log, dt_bias;  // [num_value_heads]
  bool allow_neg_eigval = false;
};

// g = -exp(A_log) softplus(f + dt_bias); f: [num_value_heads]
Eigen::VectorXd gated_delta_log_decay(const GatedDeltaParameters& parameters, const Eigen::VectorXd& f);

// One sequence. Each step takes one token's mixer inputs (after the convolution) and returns o.
class GatedDeltaRecurrence {
 public:
  explicit GatedDeltaRecurrence(GatedDeltaParameters parameters);  // state starts at zero

  // q, k: [num_key_heads, key_dim], v: [num_value_heads, value_dim], b and f: [num_value_heads], before sigmoid and
  // softplus -> o: [num_value_heads, value_dim]
  Eigen::MatrixXd step(const Eigen::MatrixXd& q, const Eigen::MatrixXd& k, const Eigen::MatrixXd& v,
                       const Eigen::VectorXd& b, const Eigen::VectorXd& f);

  const Eigen::MatrixXd& state(Eigen::Index value_head) const { return states_.state(value_head); }
  void reset() { states_.reset(); }

 private:
  GatedDeltaParameters parameters_;
  DeltaStates states_;
};

}  // namespace replayeval::reference
