#include "reference/mamba2.h"

#include "reference/functions.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>
#include <utility>

namespace replayeval::reference {
namespace {

void check(const Mamba2Parameters& parameters) {
  const Eigen::Index heads = parameters.num_heads;
  if (heads < 1 || parameters.head_dim < 1 || parameters.state_size < 1) {
    throw std::invalid_argument("reference: num_heads, head_dim and state_size must be at least 1");
  }
  if (parameters.num_groups < 1 || heads % parameters.num_groups != 0) {
    throw std::invalid_argument("reference: num_heads " + std::to_string(heads) + " is not a multiple of num_groups " +
                                std::to_string(parameters.num_groups));
  }
  expect_size("A_log", parameters.A_log.rows(), 1, heads, 1);
  expect_size("D", parameters.D.rows(), 1, heads, 1);
  expect_size("dt_bias", parameters.dt_bias.rows(), 1, heads, 1);
}

}  // namespace

Mamba2Recurrence::Mamba2Recurrence(Mamba2Parameters parameters) : parameters_(std::move(parameters)) {
  check(parameters_);
  reset();
}

void Mamba2Recurrence::reset() {
  states_.assign(static_cast<std::size_t>(parameters_.num_heads),
                 Eigen::MatrixXd::Zero(parameters_.head_dim, parameters_.state_size));
}

const Eigen::MatrixXd& Mamba2Recurrence::state(Eigen::Index head) const {
  return states_.at(static_cast<std::size_t>(head));
}

Eigen::MatrixXd Mamba2Recurrence::step(const Eigen::MatrixXd& x, const Eigen::MatrixXd& B, const Eigen::MatrixXd& C,
                                       const Eigen::VectorXd& dt_raw) {
  const Mamba2Parameters& p = parameters_;
  expect_size("x", x.rows(), x.cols(), p.num_heads, p.head_dim);
  expect_size("B", B.rows(), B.cols(), p.num_groups, p.state_size);
  expect_size("C", C.rows(), C.cols(), p.num_groups, p.state_size);
  expect_size("dt", dt_raw.rows(), 1, p.num_heads, 1);

  Eigen::MatrixXd y(p.num_heads, p.head_dim);
  const Eigen::Index heads_per_group = p.num_heads / p.num_groups;
  for (Eigen::Index head = 0; head < p.num_heads; ++head) {
    const Eigen::Index group = head / heads_per_group;
    const double dt = std::clamp(softplus(dt_raw(head) + p.dt_bias(head)), p.dt_min, p.dt_max);
    const double decay = std::exp(-std::exp(p.A_log(head)) * dt);
    Eigen::MatrixXd& S = states_[static_cast<std::size_t>(head)];
    S = decay * S + dt * x.row(head).transpose() * B.row(group);
    y.row(head) = (S * C.row(group).transpose()).transpose() + p.D(head) * x.row(head);
  }
  return y;
}

Eigen::MatrixXd causal_conv(const Eigen::MatrixXd& in, const Eigen::MatrixXd& weight, const Eigen::VectorXd& bias) {
  const Eigen::Index tokens = in.rows();
  const Eigen::Index channels = in.cols();
  const Eigen::Index taps = weight.cols();
  expect_size("weight", weight.rows(), taps, channels, taps);
  expect_size("bias", bias.rows(), 1, channels, 1);

  Eigen::MatrixXd out(tokens, channels);
  for (Eigen::Index t = 0; t < tokens; ++t) {
    for (Eigen::Index c = 0; c < channels; ++c) {
      double sum = bias(c);
      for (Eigen::Index k = 0; k < taps; ++k) {
        const Eigen::Index source = t - (taps - 1) + k;
        if (source >= 0) sum += weight(c, k) * in(source, c);
      }
      out(t, c) = silu(sum);
    }
  }
  return out;
}

}  // namespace replayeval::reference
