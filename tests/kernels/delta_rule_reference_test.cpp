// Every arm against the float64 recurrence. The allowed error is carried along with it, token by token and head by
// head: what each rounding point may add, and what the transition lets survive.
#include "kernels/storage_scalar.h"
#include "reference/gated_delta.h"
#include "reference/kda.h"
#include "tests/kernels/delta_rule_arms.h"

#include <Eigen/Core>

#include <cmath>
#include <random>

namespace replayeval::testing {
namespace {

using Matrix = Eigen::MatrixXd;
using RowMajor = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using delta_rule::Family;
using delta_rule::RingForm;
using reference::DeltaToken;

constexpr double kFloat32 = 0x1p-24;

// Largest relative error of one rounding to nearest.
double unit_roundoff(Dtype dtype) {
  if (dtype == Dtype::float32) return kFloat32;
  return dtype == Dtype::float16 ? 0x1p-11 : 0x1p-8;
}

// Largest absolute error of one rounding in the subnormal range.
double subnormal_step(Dtype dtype) { return dtype == Dtype::float16 ? 0x1p-25 : 0.0; }

Matrix values_at(const std::vector<float>& values, std::int64_t token, std::int64_t rows, std::int64_t cols) {
  return Eigen::Map<const RowMajor>(values.data() + token * rows * cols, rows, cols).cast<double>();
}

// The reference fed with a problem's tokens.
class ProblemReference {
 public:
  explicit ProblemReference(const DeltaProblem& p)
      : p_(p),
        shape_{p.shape.num_key_heads, p.shape.num_value_heads, p.shape.key_dim, p.shape.value_dim},
        gated_delta_{shape_, column(p.A_log), values_at(p.dt_bias, 0, p.shape.num_value_heads, p.gates()).col(0),
                     p.allow_neg_eigval},
        kda_{shape_,
             column(p.A_log),
             p.family == Family::kda ? values_at(p.dt_bias, 0, p.shape.num_value_heads, p.gates()) : Matrix(),
             p.gate == delta_rule::Gate::bounded,
             p.lower_bound,
             p.allow_neg_eigval},
        states_(shape_) {}

  // The token of every value head.
  std::vector<DeltaToken> tokens(std::int64_t t) const {
    const delta_rule::Shape& s = p_.shape;
    const Matrix f = values_at(p_.f, t, s.num_value_heads, p_.gates());
    const Matrix g = p_.family == Family::kda
                         ? reference::kda_log_decay(kda_, f)
                         : Matrix(reference::gated_delta_log_decay(gated_delta_, f.col(0)).replicate(1, s.key_dim));
    return reference::delta_tokens(shape_, values_at(p_.q, t, s.num_key_heads, s.key_dim),
                                   values_at(p_.k, t, s.num_key_heads, s.key_dim),
                                   values_at(p_.v, t, s.num_value_heads, s.value_dim),
                                   values_at(p_.b, t, s.num_value_heads, 1), g, p_.allow_neg_eigval);
  }
  reference::DeltaStates& states() { return states_; }

 private:
  static Eigen::VectorXd column(const std::vector<float>& v) {
    return Eigen::Map<const Eigen::VectorXf>(v.data(), static_cast<Eigen::Index>(v.size())).cast<double>();
  }

  const DeltaProblem& p_;
  reference::DeltaShape shape_;
  reference::GatedDeltaParameters gated_delta_;
  reference::KdaParameters kda_;
  reference::DeltaStates states_;
};

// One value head's bound on ‖S_kernel - S‖_F. The transition (I - beta k k^T) diag(alpha) enlarges no error where
// ‖k‖ <= 1 and beta <= 2. `mass` bounds the sum of what the window's terms weigh, whichever way they are summed.
class HeadBound {
 public:
  HeadBound(const DeltaProblem& problem, const DeltaArm& arm) : arm_(arm), dtype_(problem.dtype) {
    window_ = arm.replay ? static_cast<double>(arm.form.buffer_len) : 1.0;
  }

  // `before` and `after`: the reference's state; stores: whether the kernel stores the state after this token.
  void step(const DeltaToken& token, const Matrix& before, const Matrix& after, bool stores) {
    const double alpha = std::exp(token.log_decay.maxCoeff());
    const double v = token.beta * token.v.norm();
    const double d = (after - before * token.log_decay.array().exp().matrix().asDiagonal()).norm();
    const double ring = ring_rounding();
    const double growth = std::max(1.0, std::fabs(1.0 - token.beta * (1.0 + ring) * (1.0 + ring)));
    mass_ = alpha * mass_ + d + v;
    error_ = growth * alpha * error_ + 8 * kFloat32 * (1.0 + token.beta) * mass_;
    read_ =
        error_ * token.q.norm() + (8 + (by_adjoint(stores) ? 4 * window_ : 0.0)) * kFloat32 * mass_ * token.q.norm();
    if (arm_.replay && !stores) error_ += 2.01 * ring * kept(token, before, d, v);
    if (stores && arm_.storage.dtype != Dtype::float32) {
      error_ += unit_roundoff(arm_.storage.dtype) * (after.norm() + error_) +
                subnormal_step(arm_.storage.dtype) * std::sqrt(static_cast<double>(after.size()));
    }
  }
  double state() const { return error_; }
  double y(double size, Dtype dtype) const { return read_ + unit_roundoff(dtype) * (size + read_); }

 private:
  double ring_rounding() const {
    return arm_.replay && arm_.form.ring_dtype == Dtype::bfloat16 ? unit_roundoff(Dtype::bfloat16) : 0.0;
  }
  bool by_adjoint(bool stores) const {
    return arm_.replay && !stores && arm_.form.ring_form == RingForm::inputs && arm_.form.route == Route::output_only;
  }
  // What a ring entry's rounded vectors weigh in the state: d k^T, or beta (v - S k) k^T with v and k.
  double kept(const DeltaToken& token, const Matrix& before, double d, double v) const {
    if (arm_.form.ring_form == RingForm::deltas) return d;
    return token.beta * std::exp(token.log_decay.maxCoeff()) * (before.norm() + error_) + v;
  }

  DeltaArm arm_;
  Dtype dtype_;
  double window_ = 1.0, mass_ = 0.0, error_ = 0.0, read_ = 0.0;
};

struct RunError {
  double y = 0.0, state = 0.0;  // relative, Frobenius, over all tokens and heads; the state at the end
};

// Runs sequence 0 in two calls and expects every y and the last state within their bounds.
RunError compare(DeviceKind kind, const DeltaProblem& problem, const DeltaArm& arm) {
  const delta_rule::Shape& s = problem.shape;
  ProblemReference reference(problem);
  std::vector<HeadBound> bounds(static_cast<std::size_t>(s.num_value_heads), HeadBound(problem, arm));
  DeltaDecoder decoder(kind, problem, arm, 1);
  const std::int64_t half = problem.tokens / 2;
  Bytes y_bits = decoder.feed({{0, 0, 0}}, half);
  const Bytes rest = decoder.feed({{0, 0, half}}, problem.tokens - half);
  y_bits.insert(y_bits.end(), rest.begin(), rest.end());
  const std::vector<float> y = decode_all(y_bits, problem.y_dtype);

  double y_error = 0.0, y_norm = 0.0, state_error = 0.0, state_norm = 0.0;
  for (std::int64_t t = 0; t < problem.tokens; ++t) {
    const std::vector<DeltaToken> tokens = reference.tokens(t);
    const reference::DeltaStates before = reference.states();
    const Matrix expected = reference.states().step(tokens);
    const bool stores = !arm.replay || (t + 1) % arm.form.buffer_len == 0;
    const Matrix difference = values_at(y, t, s.num_value_heads, s.value_dim) - expected;
    for (std::size_t h = 0; h < tokens.size(); ++h) {
      const auto head = static_cast<Eigen::Index>(h);
      bounds[h].step(tokens[h], before.state(head), reference.states().state(head), stores);
      EXPECT_LE(difference.row(head).norm(), bounds[h].y(expected.row(head).norm(), problem.y_dtype))
          << "y, token " << t << " head " << h;
    }
    y_error += difference.squaredNorm();
    y_norm += expected.squaredNorm();
  }
  const std::vector<float> state = arm.replay ? decoder.reconstructed({0}) : decoder.state(0);
  for (std::size_t h = 0; h < bounds.size(); ++h) {
    const auto head = static_cast<Eigen::Index>(h);
    const Matrix difference = values_at(state, head, s.value_dim, s.key_dim) - reference.states().state(head);
    EXPECT_LE(difference.norm(), bounds[h].state()) << "state, head " << h;
    state_error += difference.squaredNorm();
    state_norm += reference.states().state(head).squaredNorm();
  }
  return {std::sqrt(y_error / y_norm), std::sqrt(state_error / state_norm)};
}

class DeltaRuleReference : public DeltaOnDevice {};
REPLAYEVAL_DELTA_ON_EACH_DEVICE(DeltaRuleReference);

// Float32 everywhere: a run of 40 tokens stays within a few units in the last place, in norm.
constexpr double kFloat32Error = 8 * kFloat32;

void expect_right(DeviceKind kind, const DeltaProblem& problem, const DeltaArm& arm) {
  const delta_rule::Shape& s = problem.shape;
  SCOPED_TRACE(arm_name(arm) + ", " + std::to_string(s.num_value_heads) + " heads for " +
               std::to_string(s.num_key_heads) + " of " + std::to_string(s.value_dim) + " x " +
               std::to_string(s.key_dim) + ", " + std::to_string(problem.tokens) + " tokens of " +
               std::string(dtype_name(problem.dtype)));
  const RunError error = compare(kind, problem, arm);
  const bool state_rounds =
      arm.storage.dtype != Dtype::float32 && (!arm.replay || problem.tokens > arm.form.buffer_len);
  const bool ring_rounds = arm.replay && arm.form.buffer_len > 1 && arm.form.ring_dtype == Dtype::bfloat16;
  if (state_rounds || ring_rounds) {
    // The roundings do take place, so the float64 result is missed by more than float32 arithmetic would.
    EXPECT_GT(error.y, kFloat32Error);
  } else if (arm.storage.dtype == Dtype::float32) {
    EXPECT_LT(error.state, kFloat32Error);
    if (problem.y_dtype == Dtype::float32) {
      EXPECT_LT(error.y, kFloat32Error);
    }
  }
}

TEST_P(DeltaRuleReference, EveryArmAtTheTunedSize) {
  const DeltaProblem problem = random_delta_problem(family(), {1, 2, 128, 128}, 1, 40, Dtype::bfloat16, 21);
  const std::vector<DeltaArm> arms = every_delta_arm(16);
  for (std::size_t i = 0; i < arms.size(); i += full_sweep() ? 1 : 4) expect_right(device(), problem, arms[i]);
}

// 96 x 192 (OLMo-Hybrid), and the largest and smallest shapes.
TEST_P(DeltaRuleReference, OtherPublishedSizesAndTheLimits) {
  unsigned seed = 23;
  for (const delta_rule::Shape& shape : std::vector<delta_rule::Shape>{
           {2, 2, 96, 192}, {1, 1, 256, 256}, {1, 3, 8, 8}, {1, 2, 256, 8}, {1, 1, 8, 256}}) {
    const DeltaProblem problem = random_delta_problem(family(), shape, 1, 20, Dtype::bfloat16, ++seed);
    const std::vector<DeltaArm> arms = every_delta_arm(8);
    for (std::size_t i = full_sweep() ? 0 : seed % 6; i < arms.size(); i += full_sweep() ? 1 : 6) {
      expect_right(device(), problem, arms[i]);
    }
  }
}

TEST_P(DeltaRuleReference, EveryInputAndOutputType) {
  unsigned seed = 30;
  for (const Dtype in : {Dtype::float32, Dtype::bfloat16, Dtype::float16}) {
    for (const Dtype out : {Dtype::float32, Dtype::bfloat16, Dtype::float16}) {
      DeltaProblem problem = random_delta_problem(family(), {2, 4, 40, 24}, 1, 30, in, ++seed);
      problem.y_dtype = out;
      for (const DeltaArm& arm : every_delta_arm(7)) expect_right(device(), problem, arm);
    }
  }
}

// Every buffer length, and with it every ring position; shapes and storage types by turns.
TEST_P(DeltaRuleReference, EveryBufferLength) {
  const std::vector<delta_rule::Shape> shapes = {{1, 2, 8, 8},   {3, 3, 40, 24},  {1, 2, 64, 48},
                                                 {1, 1, 72, 64}, {2, 2, 136, 40}, {1, 1, 128, 56}};
  std::size_t turn = 0;
  for (std::int64_t L = 1; L <= 64; ++L) {
    const std::vector<DeltaArm> arms = replay_delta_arms(L);
    for (std::size_t i = full_sweep() ? 0 : static_cast<std::size_t>(L) * 5 % arms.size(); i < arms.size();
         i += full_sweep() ? 1 : arms.size()) {
      const delta_rule::Shape& shape = shapes[turn++ % shapes.size()];
      const auto seed = static_cast<unsigned>(100 + L);
      expect_right(device(), random_delta_problem(family(), shape, 1, L + L / 2 + 2, Dtype::bfloat16, seed), arms[i]);
    }
  }
}

// Shapes drawn from all that is allowed. REPLAYEVAL_FULL_SWEEP=1 draws many more.
TEST_P(DeltaRuleReference, RandomShapes) {
  std::mt19937 random(50);
  const auto draw = [&](int low, int high) { return std::uniform_int_distribution<std::int64_t>(low, high)(random); };
  for (int round = 0; round < (full_sweep() ? 400 : 25); ++round) {
    const std::int64_t key_heads = draw(1, 3);
    const delta_rule::Shape shape{key_heads, key_heads * draw(1, 3), 8 * draw(1, 32), 8 * draw(1, 32)};
    const Dtype dtype = static_cast<Dtype>(draw(0, 2));
    const std::vector<DeltaArm> arms = every_delta_arm(draw(1, 32));
    const DeltaProblem problem =
        random_delta_problem(family(), shape, 1, draw(2, 24), dtype, static_cast<unsigned>(random()));
    expect_right(device(), problem, arms[static_cast<std::size_t>(draw(0, static_cast<int>(arms.size()) - 1))]);
  }
}

// How much of a rounding of the gate's argument g shows: the bounded gate's sigmoid of z below zero is about exp(z).
double gate_condition(const DeltaProblem& problem, double g) {
  if (problem.gate == delta_rule::Gate::softplus) return 1.0;
  return 1.0 - std::log(g / static_cast<double>(problem.lower_bound));
}

// The named rounding points, read back from an inputs ring: each keeps its float32 value, or a value of the inputs'
// type that is one rounding away.
TEST_P(DeltaRuleReference, NumericsRoundWhereTheySay) {
  for (const Dtype dtype : {Dtype::bfloat16, Dtype::float16}) {
    for (const bool compute : {false, true}) {
      DeltaProblem problem = random_delta_problem(family(), {2, 4, 40, 24}, 1, 6, dtype, 61);
      const auto precision = compute ? delta_rule::Precision::compute : delta_rule::Precision::float32;
      problem.numerics = {precision, precision, precision};
      DeltaDecoder decoder(device(), problem,
                           {true, {8, RingForm::inputs, Route::output_only, Flush::summed, Dtype::float32}, {}}, 1);
      decoder.feed({{0, 0, 0}}, 6);
      const DeltaSlotBits bits = decoder.slot_bits(0);
      const ProblemReference reference(problem);
      const auto expect_kept = [&](const Bytes& ring, std::size_t index, double exact, double doubled,
                                   double condition) {
        const float kept = decode_all(ring, Dtype::float32).at(index);
        const double bound = 8 * kFloat32 * condition + (compute ? unit_roundoff(dtype) : 0.0);
        EXPECT_LE(std::fabs(static_cast<double>(kept) - exact), bound * std::fabs(exact) + 0x1p-24 * bound);
        const float value = kept / static_cast<float>(doubled);
        if (compute) {
          EXPECT_EQ(storage::rounded(value, {dtype, Overflow::infinity}), value);
        }
        return storage::rounded(value, {dtype, Overflow::infinity}) != value;
      };
      int unrounded = 0;
      for (std::size_t t = 0; t < 6; ++t) {
        const std::vector<DeltaToken> tokens = reference.tokens(static_cast<std::int64_t>(t));
        for (std::size_t h = 0; h < 4; ++h) {
          const double twice = problem.allow_neg_eigval ? 2.0 : 1.0;
          unrounded += expect_kept(bits.beta, h * 6 + t, tokens[h].beta, twice, 1.0) ? 1 : 0;
          const auto gates = static_cast<std::size_t>(problem.gates());
          for (std::size_t c = 0; c < gates; ++c) {
            const double g = tokens[h].log_decay(static_cast<Eigen::Index>(c));
            unrounded +=
                expect_kept(bits.log_decay, (h * 6 + t) * gates + c, g, 1.0, gate_condition(problem, g)) ? 1 : 0;
          }
          for (std::size_t c = 0; c < 40; ++c) {
            const double k = tokens[h].k(static_cast<Eigen::Index>(c));
            unrounded += expect_kept(bits.k, (h / 2 * 6 + t) * 40 + c, k, 1.0, 1.0) ? 1 : 0;
          }
        }
      }
      EXPECT_EQ(unrounded > 100, !compute);
    }
  }
}

}  // namespace
}  // namespace replayeval::testing
