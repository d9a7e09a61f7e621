#include "reference/gated_delta.h"

#include "reference/functions.h"

#include <utility>

namespace replayeval::reference {

Eigen::VectorXd gated_delta_log_decay(const GatedDeltaParameters& parameters, const Eigen::VectorXd& f) {
  expect_size("f", f.rows(), 1, parameters.shape.num_value_heads, 1);
  return -parameters.A_log.array().exp() * (f + parameters.dt_bias).array().unaryExpr(&softplus);
}

GatedDeltaRecurrence::GatedDeltaRecurrence(GatedDeltaParameters parameters)
    : parameters_(std::move(parameters)), states_(parameters_.shape) {
  expect_size("A_log", parameters_.A_log.rows(), 1, parameters_.shape.num_value_heads, 1);
  expect_size("dt_bias", parameters_.dt_bias.rows(), 1, parameters_.shape.num_value_heads, 1);
}

Eigen::MatrixXd GatedDeltaRecurrence::step(const Eigen::MatrixXd& q, const Eigen::MatrixXd& k, const Eigen::MatrixXd& v,
                                           const Eigen::VectorXd& b, const Eigen::VectorXd& f) {
  const DeltaShape& shape = parameters_.shape;
  const Eigen::MatrixXd g = gated_delta_log_decay(parameters_, f).replicate(1, shape.key_dim);
  return states_.step(delta_tokens(shape, q, k, v, b, g, parameters_.allow_neg_eigval));
}

}  // namespace replayeval::reference
