// The delta-rule references against cases worked out by hand and against the state as explicit products of transition
// matrices.
#include "reference/gated_delta.h"
#include "reference/kda.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <stdexcept>

namespace replayeval::reference {
namespace {

using Matrix = Eigen::MatrixXd;
using Vector = Eigen::VectorXd;

constexpr double kTolerance = 1e-12;
const double kNoDecay = -80.0;  // as A_log: a rate of exp(-80)

GatedDeltaParameters one_head(Eigen::Index key_dim, Eigen::Index value_dim, double a_log, double bias) {
  return {{1, 1, key_dim, value_dim}, Vector::Constant(1, a_log), Vector::Constant(1, bias), false};
}

TEST(DeltaRuleReference, TwoStepsByHand) {
  // softplus(0) = log 2 and A = -1: alpha = 1/2. b = 0: beta = 1/2. K = 1: k = q = 1 but for the root's 1e-6.
  GatedDeltaRecurrence recurrence(one_head(1, 1, 0.0, 0.0));
  const Vector zero = Vector::Zero(1);
  const auto scalar = [](double v) { return Matrix::Constant(1, 1, v); };
  const double unit = 3.0 / std::sqrt(9.0 + 1e-6);
  const double first = 0.5 * 8.0 * unit;  // S_1 = beta v k
  EXPECT_NEAR(recurrence.step(scalar(3), scalar(3), scalar(8), zero, zero)(0, 0), first * unit, kTolerance);
  const double second = first / 2 + 0.5 * (4.0 - first / 2 * unit) * unit;
  EXPECT_NEAR(recurrence.step(scalar(-3), scalar(3), scalar(4), zero, zero)(0, 0), -second * unit, kTolerance);
  EXPECT_NEAR(recurrence.state(0)(0, 0), second, kTolerance);
  recurrence.reset();
  EXPECT_EQ(recurrence.state(0)(0, 0), 0.0);
}

// With beta = 1 and no decay the state forgets what it held under k and then answers k with v.
TEST(DeltaRuleReference, BetaOneProjectsTheKeyOut) {
  GatedDeltaRecurrence recurrence(one_head(6, 4, kNoDecay, 0.0));
  std::srand(1);
  const Vector open = Vector::Constant(1, 60.0);  // sigmoid is 1
  const Vector zero = Vector::Zero(1);
  for (int t = 0; t < 5; ++t) {
    recurrence.step(Matrix::Random(1, 6), Matrix::Random(1, 6), Matrix::Random(1, 4), open, zero);
  }
  const Matrix before = recurrence.state(0);
  const Vector k = l2_normalised(Vector::Random(6) * 1e4);  // so long that the 1e-6 does not matter
  recurrence.step(Matrix::Random(1, 6), 1e4 * k.transpose(), Matrix::Zero(1, 4), open, zero);
  EXPECT_LT((recurrence.state(0) - before * (Matrix::Identity(6, 6) - k * k.transpose())).norm(), kTolerance);
  const Matrix v = Matrix::Random(1, 4);
  recurrence.step(Matrix::Random(1, 6), 1e4 * k.transpose(), v, open, zero);
  EXPECT_LT((recurrence.state(0) * k - v.transpose()).norm(), kTolerance);
}

// With beta = 2 the transition is the reflection I - 2 k k^T, so the same token with v = 0 twice changes nothing.
TEST(DeltaRuleReference, BetaTwoReflects) {
  GatedDeltaParameters p = one_head(5, 3, kNoDecay, 0.0);
  p.allow_neg_eigval = true;
  GatedDeltaRecurrence recurrence(p);
  std::srand(2);
  const Vector zero = Vector::Zero(1);
  for (int t = 0; t < 4; ++t) {
    recurrence.step(Matrix::Random(1, 5), Matrix::Random(1, 5), Matrix::Random(1, 3), Vector::Random(1), zero);
  }
  const Matrix before = recurrence.state(0);
  const Matrix k = 1e4 * Matrix::Random(1, 5);
  const Vector open = Vector::Constant(1, 60.0);
  recurrence.step(Matrix::Random(1, 5), k, Matrix::Zero(1, 3), open, zero);
  EXPECT_GT((recurrence.state(0) - before).norm(), 1e-3);
  recurrence.step(Matrix::Random(1, 5), k, Matrix::Zero(1, 3), open, zero);
  EXPECT_LT((recurrence.state(0) - before).norm(), 1e-11);
}

// S_t = sum_j beta_j v_j k_j^T prod_{i > j} diag(alpha_i) (I - beta_i k_i k_i^T), every factor a matrix of its own.
class ProductForm {
 public:
  void step(const DeltaToken& token) {
    const Matrix alpha = token.log_decay.array().exp().matrix().asDiagonal();
    const Matrix identity = Matrix::Identity(token.k.size(), token.k.size());
    const Matrix transition = alpha * (identity - token.beta * token.k * token.k.transpose());
    for (Matrix& term : terms_) term = term * transition;
    terms_.push_back(token.beta * token.v * token.k.transpose());
  }
  Matrix state() const {
    Matrix sum = terms_.front();
    for (std::size_t j = 1; j < terms_.size(); ++j) sum += terms_[j];
    return sum;
  }

 private:
  std::vector<Matrix> terms_;
};

struct RandomToken {
  Matrix q, k, v;
  Vector b;
  explicit RandomToken(const DeltaShape& s)
      : q(Matrix::Random(s.num_key_heads, s.key_dim)),
        k(Matrix::Random(s.num_key_heads, s.key_dim)),
        v(Matrix::Random(s.num_value_heads, s.value_dim)),
        b(Vector::Random(s.num_value_heads)) {}
};

template <class Recurrence>
void expect_products(const Recurrence& recurrence, const std::vector<ProductForm>& products, const Matrix& o,
                     const std::vector<DeltaToken>& tokens) {
  for (std::size_t h = 0; h < tokens.size(); ++h) {
    const auto head = static_cast<Eigen::Index>(h);
    const Matrix expected = products[h].state();
    EXPECT_LT((recurrence.state(head) - expected).norm(), kTolerance);
    EXPECT_LT((o.row(head).transpose() - expected * tokens[h].q).norm(), kTolerance);
  }
}

TEST(GatedDeltaReference, EqualsTheProductOfTransitions) {
  std::srand(3);
  const GatedDeltaParameters p{{2, 6, 5, 3}, Vector::Random(6), Vector::Random(6), true};
  GatedDeltaRecurrence recurrence(p);
  std::vector<ProductForm> products(6);
  for (int t = 0; t < 12; ++t) {
    const RandomToken in(p.shape);
    const Vector f = Vector::Random(6);
    const Matrix o = recurrence.step(in.q, in.k, in.v, in.b, f);
    Matrix g(6, 5);
    for (int h = 0; h < 6; ++h) g.row(h).setConstant(-std::exp(p.A_log(h)) * std::log1p(std::exp(f(h) + p.dt_bias(h))));
    const std::vector<DeltaToken> tokens = delta_tokens(p.shape, in.q, in.k, in.v, in.b, g, true);
    for (std::size_t h = 0; h < 6; ++h) products[h].step(tokens[h]);
    expect_products(recurrence, products, o, tokens);
  }
}

TEST(KdaReference, EqualsTheProductOfTransitionsWithBothGates) {
  for (const bool bounded : {false, true}) {
    std::srand(4);
    const KdaParameters p{{2, 4, 5, 3}, Vector::Random(4), Matrix::Random(4, 5), bounded, -3.0, false};
    KdaRecurrence recurrence(p);
    std::vector<ProductForm> products(4);
    for (int t = 0; t < 12; ++t) {
      const RandomToken in(p.shape);
      const Matrix f = Matrix::Random(4, 5);
      const Matrix o = recurrence.step(in.q, in.k, in.v, in.b, f);
      Matrix g(4, 5);
      for (int h = 0; h < 4; ++h) {
        for (int c = 0; c < 5; ++c) {
          const double shifted = f(h, c) + p.dt_bias(h, c);
          const double rate = std::exp(p.A_log(h));
          g(h, c) = bounded ? -3.0 / (1.0 + std::exp(-rate * shifted)) : -rate * std::log1p(std::exp(shifted));
        }
      }
      const std::vector<DeltaToken> tokens = delta_tokens(p.shape, in.q, in.k, in.v, in.b, g, false);
      for (std::size_t h = 0; h < 4; ++h) products[h].step(tokens[h]);
      expect_products(recurrence, products, o, tokens);
    }
  }
}

// A channel's decay acts on that channel alone, and the same decay in all of them is Gated DeltaNet.
TEST(KdaReference, EqualDecaysAreGatedDeltaNet) {
  std::srand(5);
  const GatedDeltaParameters gdn{{1, 2, 4, 3}, Vector::Random(2), Vector::Random(2), false};
  const KdaParameters kda{gdn.shape, gdn.A_log, gdn.dt_bias.replicate(1, 4), false, -5.0, false};
  GatedDeltaRecurrence a(gdn);
  KdaRecurrence b(kda);
  for (int t = 0; t < 6; ++t) {
    const RandomToken in(gdn.shape);
    const Vector f = Vector::Random(2);
    const Matrix o = a.step(in.q, in.k, in.v, in.b, f);
    EXPECT_LT((o - b.step(in.q, in.k, in.v, in.b, f.replicate(1, 4))).norm(), kTolerance);
    const RandomToken other(gdn.shape);
    Matrix uneven = f.replicate(1, 4);
    uneven(1, 2) += 1.0;
    KdaRecurrence c = b;
    KdaRecurrence d = b;
    c.step(other.q, Matrix::Zero(1, 4), other.v, other.b, f.replicate(1, 4));
    d.step(other.q, Matrix::Zero(1, 4), other.v, other.b, uneven);
    const Matrix difference = c.state(1) - d.state(1);
    EXPECT_GT(difference.col(2).norm(), 1e-6);
    EXPECT_EQ(difference.col(1).norm(), 0.0);
    EXPECT_EQ(c.state(0), d.state(0));
  }
}

TEST(DeltaRuleReference, RefusesWrongSizes) {
  GatedDeltaParameters p = one_head(2, 2, 0, 0);
  p.shape.num_value_heads = 3;
  p.shape.num_key_heads = 2;
  EXPECT_THROW(GatedDeltaRecurrence{p}, std::invalid_argument);
  GatedDeltaRecurrence recurrence(one_head(2, 3, 0, 0));
  try {
    recurrence.step(Matrix::Zero(1, 2), Matrix::Zero(1, 3), Matrix::Zero(1, 3), Vector::Zero(1), Vector::Zero(1));
    FAIL() << "not refused";
  } catch (const std::invalid_argument& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("k is 1 x 3, expected 1 x 2"));
  }
  KdaParameters kda{{1, 1, 2, 2}, Vector::Zero(1), Matrix::Zero(1, 2), true, 0.0, false};
  EXPECT_THROW(KdaRecurrence{kda}, std::invalid_argument);
}

}  // namespace
}  // namespace replayeval::reference
