// The Kimi Delta Attention recurrence in float64, written for reading: Gated DeltaNet with a decay per key channel
// (Kimi Linear, 2025, eq. 1).
#pragma once

#include "reference/delta_rule.h"

namespace replayeval::reference {

struct KdaParameters {
  DeltaShape shape;
  Eigen::VectorXd A_log;    // [num_value_heads]
  Eigen::MatrixXd dt_bias;  // [num_value_heads, key_dim]
  // The gate's form: -exp(A_log) softplus(f + dt_bias), or lower_bound sigmoid(exp(A_log) (f + dt_bias)).
  bool bounded_gate = false;
  double lower_bound = -5.0;  // negative
  bool allow_neg_eigval = false;
};

// g of every key channel; f: [num_value_heads, key_dim]
Eigen::MatrixXd kda_log_decay(const KdaParameters& parameters, const Eigen::MatrixXd& f);

// One sequence. Each step takes one token's mixer inputs (after the convolution) and returns o.
class KdaRecurrence {
 public:
  explicit KdaRecurrence(KdaParameters parameters);  // state starts at zero

  // q, k: [num_key_heads, key_dim], v: [num_value_heads, value_dim], b: [num_value_heads], f: [num_value_heads,
  // key_dim]
  // -> o: [num_value_heads, value_dim]
  Eigen::MatrixXd step(const Eigen::MatrixXd& q, const Eigen::MatrixXd& k, const Eigen::MatrixXd& v,
                       const Eigen::VectorXd& b, const Eigen::MatrixXd& f);

  const Eigen::MatrixXd& state(Eigen::Index value_head) const { return states_.state(value_head); }
  void reset() { states_.reset(); }

 private:
  KdaParameters parameters_;
  DeltaStates states_;
};

}  // namespace replayeval::reference
