// The Mamba-2 recurrence and the causal convolution in float64, written for reading: the truth that kernels are
// tested against, and the gold executor of the state-error metrics.
#pragma once

#include <Eigen/Core>

#include <limits>
#include <vector>

namespace replayeval::reference {

struct Mamba2Parameters {
  Eigen::Index num_heads = 0, num_groups = 0, head_dim = 0, state_size = 0;
  Eigen::VectorXd A_log, D, dt_bias;  // [num_heads]
  double dt_min = 0.0;
  double dt_max = std::numeric_limits<double>::infinity();
};

// One sequence. Each step takes one token's mixer inputs and returns y.
class Mamba2Recurrence {
 public:
  explicit Mamba2Recurrence(Mamba2Parameters parameters);  // state starts at zero

  // x: [num_heads, head_dim], B and C: [num_groups, state_size], dt_raw: [num_heads] -> y: [num_heads, head_dim]
  Eigen::MatrixXd step(const Eigen::MatrixXd& x, const Eigen::MatrixXd& B, const Eigen::MatrixXd& C,
                       const Eigen::VectorXd& dt_raw);

  const Eigen::MatrixXd& state(Eigen::Index head) const;  // [head_dim, state_size]
  void reset();

 private:
  Mamba2Parameters parameters_;
  std::vector<Eigen::MatrixXd> states_;
};

// u_t[c] = silu(bias[c] + sum_k weight(c, k) in(t - (K-1) + k, c)); in: [tokens, channels], zero before the start.
Eigen::MatrixXd causal_conv(const Eigen::MatrixXd& in, const Eigen::MatrixXd& weight, const Eigen::VectorXd& bias);

}  // namespace replayeval::reference
