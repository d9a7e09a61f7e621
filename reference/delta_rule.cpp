#include "reference/delta_rule.h"

#include "reference/functions.h"

namespace replayeval::reference {

Eigen::VectorXd delta_step(Eigen::MatrixXd& S, const DeltaToken& token) {
  S.array().rowwise() *= token.log_decay.array().exp().transpose();  // in place, without a copy of S
  const Eigen::VectorXd d = token.beta * (token.v - S * token.k);
  S += d * token.k.transpose();
  return S * token.q;
}

Eigen::VectorXd l2_normalised(const Eigen::VectorXd& x) { return x / std::sqrt(x.squaredNorm() + 1e-6); }

DeltaStates::DeltaStates(const DeltaShape& shape) : shape_(shape) {
  if (shape.num_key_heads < 1 || shape.key_dim < 1 || shape.value_dim < 1) {
    throw std::invalid_argument("reference: num_key_heads, key_dim and value_dim must be at least 1");
  }
  if (shape.num_value_heads < 1 || shape.num_value_heads % shape.num_key_heads != 0) {
    throw std::invalid_argument("reference: num_value_heads " + std::to_string(shape.num_value_heads) +
                                " is not a multiple of num_key_heads " + std::to_string(shape.num_key_heads));
  }
  reset();
}

void DeltaStates::reset() {
  states_.assign(static_cast<std::size_t>(shape_.num_value_heads),
                 Eigen::MatrixXd::Zero(shape_.value_dim, shape_.key_dim));
}

const Eigen::MatrixXd& DeltaStates::state(Eigen::Index value_head) const {
  return states_.at(static_cast<std::size_t>(value_head));
}

Eigen::MatrixXd DeltaStates::step(const std::vector<DeltaToken>& tokens) {
  expect_size("tokens", static_cast<Eigen::Index>(tokens.size()), 1, shape_.num_value_heads, 1);
  Eigen::MatrixXd o(shape_.num_value_heads, shape_.value_dim);
  for (std::size_t head = 0; head < tokens.size(); ++head) {
    o.row(static_cast<Eigen::Index>(head)) = delta_step(states_[head], tokens[head]).transpose();
  }
  return o;
}

std::vector<DeltaToken> delta_tokens(const DeltaShape& shape, const Eigen::MatrixXd& q, const Eigen::MatrixXd& k,
                                     const Eigen::MatrixXd& v, const Eigen::VectorXd& b,
                                     const Eigen::MatrixXd& log_decay, bool allow_neg_eigval) {
  expect_size("q", q.rows(), q.cols(), shape.num_key_heads, shape.key_dim);
  expect_size("k", k.rows(), k.cols(), shape.num_key_heads, shape.key_dim);
  expect_size("v", v.rows(), v.cols(), shape.num_value_heads, shape.value_dim);
  expect_size("b", b.rows(), 1, shape.num_value_heads, 1);
  expect_size("log_decay", log_decay.rows(), log_decay.cols(), shape.num_value_heads, shape.key_dim);
  const double scale = 1.0 / std::sqrt(static_cast<double>(shape.key_dim));
  const Eigen::Index heads_per_key = shape.num_value_heads / shape.num_key_heads;
  std::vector<DeltaToken> tokens;
  for (Eigen::Index head = 0; head < shape.num_value_heads; ++head) {
    const Eigen::Index key_head = head / heads_per_key;
    tokens.push_back({scale * l2_normalised(q.row(key_head)), l2_normalised(k.row(key_head)), v.row(head),
                      (allow_neg_eigval ? 2.0 : 1.0) * sigmoid(b(head)), log_decay.row(head)});
  }
  return tokens;
}

}  // namespace replayeval::reference
