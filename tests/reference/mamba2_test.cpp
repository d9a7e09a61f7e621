// The reference against cases worked out by hand and against another way to write the same sum.
#include "reference/mamba2.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <stdexcept>

namespace replayeval::reference {
namespace {

Mamba2Parameters one_head(double a_log, double D, double dt_bias) {
  Mamba2Parameters p;
  p.num_heads = p.num_groups = p.head_dim = p.state_size = 1;
  p.A_log = Eigen::VectorXd::Constant(1, a_log);
  p.D = Eigen::VectorXd::Constant(1, D);
  p.dt_bias = Eigen::VectorXd::Constant(1, dt_bias);
  return p;
}

Eigen::MatrixXd scalar(double value) { return Eigen::MatrixXd::Constant(1, 1, value); }

TEST(Mamba2Reference, TwoStepsByHand) {
  // softplus(0) = log 2 and A = -1, so a = 1/2. S_1 = log 2 * 3 * 5; S_2 = S_1 / 2 + log 2 * 7 * 11.
  Mamba2Recurrence recurrence(one_head(0.0, 2.0, 0.0));
  const Eigen::VectorXd dt = Eigen::VectorXd::Zero(1);
  EXPECT_NEAR(recurrence.step(scalar(3), scalar(5), scalar(1), dt)(0, 0), 15 * std::log(2.0) + 6, 1e-12);
  EXPECT_NEAR(recurrence.step(scalar(7), scalar(11), scalar(2), dt)(0, 0), 2 * (7.5 + 77) * std::log(2.0) + 14, 1e-12);
  EXPECT_NEAR(recurrence.state(0)(0, 0), 84.5 * std::log(2.0), 1e-12);
  recurrence.reset();
  EXPECT_EQ(recurrence.state(0)(0, 0), 0.0);
}

TEST(Mamba2Reference, TimeStepsAreClampedAfterSoftplus) {
  Mamba2Parameters p = one_head(0.0, 0.0, 0.0);
  p.dt_min = 0.5;
  p.dt_max = 2.0;
  for (const auto& [raw, dt] : {std::pair{-30.0, 0.5}, {30.0, 2.0}, {0.0, std::log(2.0)}}) {
    Mamba2Recurrence recurrence(p);
    EXPECT_NEAR(recurrence.step(scalar(1), scalar(1), scalar(1), Eigen::VectorXd::Constant(1, raw))(0, 0), dt, 1e-12);
  }
}

// The unrolled sum: y_t = sum_j exp(A sum_{j < i <= t} dt_i) dt_j (B_j · C_t) x_j + D x_t, with heads sharing groups.
TEST(Mamba2Reference, EqualsTheUnrolledSum) {
  Mamba2Parameters p;
  p.num_heads = 4;
  p.num_groups = 2;
  p.head_dim = 3;
  p.state_size = 5;
  std::srand(3);
  p.A_log = Eigen::VectorXd::Random(4);
  p.D = Eigen::VectorXd::Random(4);
  p.dt_bias = Eigen::VectorXd::Random(4);
  Mamba2Recurrence recurrence(p);
  std::vector<Eigen::MatrixXd> x, B, C;
  std::vector<Eigen::VectorXd> dt;
  for (int t = 0; t < 9; ++t) {
    x.push_back(Eigen::MatrixXd::Random(4, 3));
    B.push_back(Eigen::MatrixXd::Random(2, 5));
    C.push_back(Eigen::MatrixXd::Random(2, 5));
    const Eigen::VectorXd raw = Eigen::VectorXd::Random(4);
    dt.push_back((raw + p.dt_bias).array().exp().log1p());
    const Eigen::MatrixXd y = recurrence.step(x.back(), B.back(), C.back(), raw);
    for (int h = 0; h < 4; ++h) {
      const int group = h / 2;
      Eigen::RowVectorXd expected = p.D(h) * x.back().row(h);
      double later = 0.0;
      for (int j = t; j >= 0; --j) {
        const auto i = static_cast<std::size_t>(j);
        const double weight = std::exp(-std::exp(p.A_log(h)) * later) * dt[i](h);
        expected += weight * B[i].row(group).dot(C.back().row(group)) * x[i].row(h);
        later += dt[i](h);
      }
      EXPECT_LT((y.row(h) - expected).norm(), 1e-12 * (1.0 + expected.norm()));
    }
  }
}

TEST(Mamba2Reference, RefusesWrongSizes) {
  Mamba2Parameters p = one_head(0, 0, 0);
  p.num_heads = 3;
  p.num_groups = 2;
  EXPECT_THROW(Mamba2Recurrence{p}, std::invalid_argument);
  Mamba2Recurrence recurrence(one_head(0, 0, 0));
  try {
    recurrence.step(Eigen::MatrixXd::Zero(2, 1), scalar(1), scalar(1), Eigen::VectorXd::Zero(1));
    FAIL() << "not refused";
  } catch (const std::invalid_argument& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("x is 2 x 1, expected 1 x 1"));
  }
}

TEST(CausalConvReference, ByHand) {
  Eigen::MatrixXd in(3, 1);
  in << 1, 2, 3;
  Eigen::MatrixXd weight(1, 2);
  weight << 10, 1;  // the older input times 10
  const Eigen::MatrixXd out = causal_conv(in, weight, Eigen::VectorXd::Constant(1, -1.0));
  const auto silu = [](double v) { return v / (1.0 + std::exp(-v)); };
  EXPECT_NEAR(out(0, 0), silu(0.0), 1e-15);
  EXPECT_NEAR(out(1, 0), silu(11.0), 1e-12);
  EXPECT_NEAR(out(2, 0), silu(22.0), 1e-12);
}

}  // namespace
}  // namespace replayeval::reference
