// The gated delta rule of one head in float64, as Gated DeltaNet (a scalar decay) and Kimi Delta Attention (a decay per
// key channel) share it; Yang et al. 2024, "Gated Delta Networks", eq. 10, with the state transposed.
#pragma once

#include <Eigen/Core>

#include <vector>

namespace replayeval::reference {

struct DeltaShape {
  Eigen::Index num_key_heads = 0, num_value_heads = 0;  // value heads a multiple of key heads
  Eigen::Index key_dim = 0, value_dim = 0;
};

// One head's token, ready for the recurrence.
struct DeltaToken {
  Eigen::VectorXd q;          // [key_dim], normalised and scaled by key_dim^-1/2
  Eigen::VectorXd k;          // [key_dim], normalised
  Eigen::VectorXd v;          // [value_dim]
  double beta = 0.0;          // 0..1, or 0..2 where negative eigenvalues are allowed
  Eigen::VectorXd log_decay;  // g, [key_dim]; a scalar decay repeats
};

// S <- S diag(exp(g)); d = beta (v - S k); S <- S + d k^T. Returns S q.   S: [value_dim, key_dim]
Eigen::VectorXd delta_step(Eigen::MatrixXd& S, const DeltaToken& token);

// x / sqrt(|x|^2 + 1e-6)
Eigen::VectorXd l2_normalised(const Eigen::VectorXd& x);

// The states of all value heads of one sequence. Each throws std::invalid_argument on sizes that do not fit.
class DeltaStates {
 public:
  explicit DeltaStates(const DeltaShape& shape);  // zero

  // tokens: one a value head -> o: [num_value_heads, value_dim]
  Eigen::MatrixXd step(const std::vector<DeltaToken>& tokens);
  const Eigen::MatrixXd& state(Eigen::Index value_head) const;  // [value_dim, key_dim]
  void reset();

 private:
  DeltaShape shape_;
  std::vector<Eigen::MatrixXd> states_;
};

// What both families do to a token before the recurrence: q, k: [num_key_heads, key_dim], v: [num_value_heads,
// value_dim], b (before the sigmoid): [num_value_heads], log_decay: [num_value_heads, key_dim]. Value head h reads key
// head h / (num_value_heads / num_key_heads); beta is doubled with allow_neg_eigval.
std::vector<DeltaToken> delta_tokens(const DeltaShape& shape, const Eigen::MatrixXd& q, const Eigen::MatrixXd& k,
                                     const Eigen::MatrixXd& v, const Eigen::VectorXd& b,
                                     const Eigen::MatrixXd& log_decay, bool allow_neg_eigval);

}  // namespace replayeval::reference
