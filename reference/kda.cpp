#include "reference/kda.h"

#include "reference/functions.h"

#include <utility>

namespace replayeval::reference {

Eigen::MatrixXd kda_log_decay(const KdaParameters& parameters, const Eigen::MatrixXd& f) {
  expect_size("f", f.rows(), f.cols(), parameters.shape.num_value_heads, parameters.shape.key_dim);
  const Eigen::MatrixXd shifted = f + parameters.dt_bias;
  const Eigen::VectorXd rate = parameters.A_log.array().exp();
  if (parameters.bounded_gate) return parameters.lower_bound * (rate.asDiagonal() * shifted).unaryExpr(&sigmoid);
  return -(rate.asDiagonal() * shifted.unaryExpr(&softplus));
}

KdaRecurrence::KdaRecurrence(KdaParameters parameters)
    : parameters_(std::move(parameters)), states_(parameters_.shape) {
  const DeltaShape& shape = parameters_.shape;
  expect_size("A_log", parameters_.A_log.rows(), 1, shape.num_value_heads, 1);
  expect_size("dt_bias", parameters_.dt_bias.rows(), parameters_.dt_bias.cols(), shape.num_value_heads, shape.key_dim);
  if (parameters_.bounded_gate && !(parameters_.lower_bound < 0.0)) {
    throw std::invalid_argument("reference: lower_bound is " + std::to_string(parameters_.lower_bound) +
                                ", expected a negative number");
  }
}

Eigen::MatrixXd KdaRecurrence::step(const Eigen::MatrixXd& q, const Eigen::MatrixXd& k, const Eigen::MatrixXd& v,
                                    const Eigen::VectorXd& b, const Eigen::MatrixXd& f) {
  const Eigen::MatrixXd g = kda_log_decay(parameters_, f);
  return states_.step(delta_tokens(parameters_.shape, q, k, v, b, g, parameters_.allow_neg_eigval));
}

}  // namespace replayeval::reference
