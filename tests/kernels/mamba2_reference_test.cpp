// Every arm against the float64 recurrence. The allowed error is carried along with it, token by token and head by
// head: what each rounding point may add, and what the decay lets survive.
#include "kernels/storage_scalar.h"
#include "reference/mamba2.h"
#include "tests/kernels/mamba2_arms.h"
#include "tests/kernels/on_device.h"

#include <Eigen/Core>

#include <cmath>
#include <random>

namespace replayeval::testing {
namespace {

using Matrix = Eigen::MatrixXd;
using RowMajor = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

// Largest relative error of one rounding to nearest.
double unit_roundoff(Dtype dtype) {
  if (dtype == Dtype::float32) return 0x1p-24;
  return dtype == Dtype::float16 ? 0x1p-11 : 0x1p-8;
}

// What the ring's storage does to an entry's factor; inputs that are bfloat16 already lose nothing.
double ring_rounding(const Mamba2Problem& problem, const Mamba2Arm& arm) {
  const bool loses = arm.form.ring_dtype == Dtype::bfloat16 && problem.dtype != Dtype::bfloat16;
  return loses ? unit_roundoff(Dtype::bfloat16) : 0.0;
}

// Largest absolute error of one rounding in the subnormal range.
double subnormal_step(Dtype dtype) { return dtype == Dtype::float16 ? 0x1p-25 : 0.0; }

Matrix values_at(const std::vector<float>& values, std::int64_t token, std::int64_t rows, std::int64_t cols) {
  return Eigen::Map<const RowMajor>(values.data() + token * rows * cols, rows, cols).cast<double>();
}

// Float32 arithmetic of one step: a handful of roundings of the state (decay, product, sum) and of the exponential.
constexpr double kStepRoundoff = 6 * 0x1p-24;

// The reference with, for each head, a bound on ‖S_kernel - S‖_F.
class BoundedReference {
 public:
  BoundedReference(const Mamba2Problem& problem, const Mamba2Arm& arm)
      : problem_(problem),
        arm_(arm),
        recurrence_(parameters(problem)),
        bound_(static_cast<std::size_t>(problem.shape.num_heads), 0.0) {}

  // y of the token: [num_heads, head_dim]
  Matrix step(std::int64_t token) {
    const mamba2::Shape& s = problem_.shape;
    x_ = values_at(problem_.x, token, s.num_heads, s.head_dim);
    B_ = values_at(problem_.B, token, s.num_groups, s.state_size);
    C_ = values_at(problem_.C, token, s.num_groups, s.state_size);
    const Eigen::VectorXd dt_raw = values_at(problem_.dt, token, 1, s.num_heads).transpose();
    y_ = recurrence_.step(x_, B_, C_, dt_raw);
    ++steps_;
    const bool stores = !arm_.replay || steps_ % arm_.form.buffer_len == 0;
    y_bound_.assign(bound_.size(), 0.0);
    for (Eigen::Index h = 0; h < s.num_heads; ++h) advance_bound(h, dt_raw(h), stores);
    return y_;
  }
  double y_bound(Eigen::Index head) const { return y_bound_[static_cast<std::size_t>(head)]; }
  double state_bound(Eigen::Index head) const { return bound_[static_cast<std::size_t>(head)]; }
  const Matrix& state(Eigen::Index head) const { return recurrence_.state(head); }

 private:
  static reference::Mamba2Parameters parameters(const Mamba2Problem& p) {
    const auto wide = [](const std::vector<float>& v) -> Eigen::VectorXd {
      return Eigen::Map<const Eigen::VectorXf>(v.data(), static_cast<Eigen::Index>(v.size())).cast<double>();
    };
    return {p.shape.num_heads, p.shape.num_groups, p.shape.head_dim, p.shape.state_size, wide(p.A_log), wide(p.D),
            wide(p.dt_bias),   p.dt_min,           p.dt_max};
  }

  void advance_bound(Eigen::Index h, double dt_raw, bool stores) {
    const mamba2::Shape& s = problem_.shape;
    const auto i = static_cast<std::size_t>(h);
    const Eigen::Index group = h / (s.num_heads / s.num_groups);
    const double dt =
        std::clamp<double>(std::log1p(std::exp(dt_raw + problem_.dt_bias[i])), problem_.dt_min, problem_.dt_max);
    const double decay = std::exp(-std::exp(static_cast<double>(problem_.A_log[i])) * dt);
    const Matrix& S = recurrence_.state(h);
    const double norm = S.norm();
    const double entry = dt * x_.row(h).norm() * B_.row(group).norm();

    bound_[i] = decay * bound_[i] + kStepRoundoff * (norm + entry);
    // y = S C + D x: what the state lacks, a sum of state_size products in float32, and y's own rounding.
    const double products = (S.cwiseAbs() * C_.row(group).cwiseAbs().transpose()).norm();
    const double y_size = y_.row(h).norm() + std::fabs(problem_.D[i]) * x_.row(h).norm();
    y_bound_[i] = bound_[i] * C_.row(group).norm() + 8 * 0x1p-24 * (products + y_size) +
                  unit_roundoff(problem_.y_dtype) * (y_.row(h).norm() + bound_[i] * C_.row(group).norm());
    if (arm_.replay && !stores) bound_[i] += 2.01 * ring_rounding(problem_, arm_) * entry;  // x and B, from now on
    if (stores && arm_.storage.dtype != Dtype::float32) {
      bound_[i] += unit_roundoff(arm_.storage.dtype) * (norm + bound_[i]) +
                   subnormal_step(arm_.storage.dtype) * std::sqrt(static_cast<double>(s.head_dim * s.state_size));
    }
  }

  const Mamba2Problem& problem_;
  Mamba2Arm arm_;
  reference::Mamba2Recurrence recurrence_;
  std::int64_t steps_ = 0;
  Matrix x_, B_, C_, y_;
  std::vector<double> bound_, y_bound_;
};

struct RunError {
  double y = 0.0, state = 0.0;  // relative, Frobenius, over all tokens and heads; the state at the end
};

// Feeds sequence 0 in blocks and compares every token's y and the final state.
RunError compare(DeviceKind kind, const Mamba2Problem& problem, const Mamba2Arm& arm) {
  const mamba2::Shape& s = problem.shape;
  BoundedReference reference(problem, arm);
  Mamba2Decoder decoder(kind, problem, arm, 1);
  const std::int64_t half = problem.tokens / 2;
  Bytes y_bits = decoder.feed({{0, 0, 0}}, half);
  const Bytes rest = decoder.feed({{0, 0, half}}, problem.tokens - half);
  y_bits.insert(y_bits.end(), rest.begin(), rest.end());
  const std::vector<float> y = decode_all(y_bits, problem.y_dtype);

  double y_error = 0.0, y_norm = 0.0, state_error = 0.0, state_norm = 0.0;
  for (std::int64_t t = 0; t < problem.tokens; ++t) {
    const Matrix expected = reference.step(t);
    const Matrix difference = values_at(y, t, s.num_heads, s.head_dim) - expected;
    for (Eigen::Index h = 0; h < s.num_heads; ++h) {
      EXPECT_LE(difference.row(h).norm(), reference.y_bound(h)) << "y, token " << t << " head " << h;
    }
    y_error += difference.squaredNorm();
    y_norm += expected.squaredNorm();
  }
  const std::vector<float> state = arm.replay ? decoder.reconstructed({0}) : decoder.state(0);
  for (Eigen::Index h = 0; h < s.num_heads; ++h) {
    const Matrix difference = values_at(state, h, s.head_dim, s.state_size) - reference.state(h);
    EXPECT_LE(difference.norm(), reference.state_bound(h)) << "state, head " << h;
    state_error += difference.squaredNorm();
    state_norm += reference.state(h).squaredNorm();
  }
  return {std::sqrt(y_error / y_norm), std::sqrt(state_error / state_norm)};
}

class Mamba2Reference : public OnDevice {};
REPLAYEVAL_ON_EACH_DEVICE(Mamba2Reference);

// Float32 everywhere: a run of 40 tokens stays within a few units in the last place, in norm.
constexpr double kFloat32Error = 8 * 0x1p-24;

void expect_right(DeviceKind kind, const Mamba2Problem& problem, const Mamba2Arm& arm) {
  const mamba2::Shape& s = problem.shape;
  SCOPED_TRACE(arm_name(arm) + ", " + std::to_string(s.num_heads) + " heads in " + std::to_string(s.num_groups) +
               " groups of " + std::to_string(s.head_dim) + " x " + std::to_string(s.state_size) + ", " +
               std::to_string(problem.tokens) + " tokens of " + std::string(dtype_name(problem.dtype)));
  const RunError error = compare(kind, problem, arm);
  const bool state_rounds =
      arm.storage.dtype != Dtype::float32 && (!arm.replay || problem.tokens > arm.form.buffer_len);
  const bool ring_rounds = arm.replay && arm.form.buffer_len > 1 && ring_rounding(problem, arm) > 0.0;
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

TEST_P(Mamba2Reference, EveryArmAtTheTunedSize) {
  const Mamba2Problem problem = random_problem({3, 1, 64, 128}, 1, 40, Dtype::bfloat16, 21);
  for (const Mamba2Arm& arm : every_arm(16)) expect_right(GetParam(), problem, arm);
}

TEST_P(Mamba2Reference, EveryInputAndOutputType) {
  unsigned seed = 30;
  for (const Dtype in : {Dtype::float32, Dtype::bfloat16, Dtype::float16}) {
    for (const Dtype out : {Dtype::float32, Dtype::bfloat16, Dtype::float16}) {
      Mamba2Problem problem = random_problem({4, 2, 24, 40}, 1, 30, in, ++seed);
      problem.y_dtype = out;
      for (const Mamba2Arm& arm : every_arm(7)) expect_right(GetParam(), problem, arm);
    }
  }
}

TEST_P(Mamba2Reference, ClampedTimeSteps) {
  Mamba2Problem problem = random_problem({4, 2, 16, 32}, 1, 30, Dtype::float32, 40);
  problem.dt_min = 0.05F;
  problem.dt_max = 0.2F;
  for (const Mamba2Arm& arm : every_arm(4)) expect_right(GetParam(), problem, arm);
}

// Every buffer length, and with it every ring position; shapes and storage types by turns.
TEST_P(Mamba2Reference, EveryBufferLength) {
  const std::vector<mamba2::Shape> shapes = {{2, 1, 8, 8},    {3, 3, 24, 40},  {4, 2, 64, 128},
                                             {2, 1, 128, 72}, {2, 2, 40, 136}, {1, 1, 56, 256}};
  std::size_t turn = 0;
  for (std::int64_t L = 1; L <= 64; ++L) {
    const std::vector<Mamba2Arm> arms = replay_arms(L);
    for (std::size_t i = full_sweep() ? 0 : static_cast<std::size_t>(L) * 5 % 24; i < arms.size();
         i += full_sweep() ? 1 : 24) {
      const mamba2::Shape& shape = shapes[turn++ % shapes.size()];
      expect_right(GetParam(), random_problem(shape, 1, L + L / 2 + 2, Dtype::bfloat16, static_cast<unsigned>(100 + L)),
                   arms[i]);
    }
  }
}

// Shapes drawn from all that is allowed. REPLAYEVAL_FULL_SWEEP=1 draws many more.
TEST_P(Mamba2Reference, RandomShapes) {
  std::mt19937 random(50);
  const auto draw = [&](int low, int high) { return std::uniform_int_distribution<std::int64_t>(low, high)(random); };
  for (int round = 0; round < (full_sweep() ? 400 : 40); ++round) {
    const std::int64_t groups = draw(1, 3);
    const mamba2::Shape shape{groups * draw(1, 3), groups, 8 * draw(1, 16), 8 * draw(1, 32)};
    const Dtype dtype = static_cast<Dtype>(draw(0, 2));
    const std::vector<Mamba2Arm> arms = every_arm(draw(1, 64));
    const Mamba2Problem problem = random_problem(shape, 1, draw(2, 40), dtype, static_cast<unsigned>(random()));
    expect_right(GetParam(), problem, arms[static_cast<std::size_t>(draw(0, static_cast<int>(arms.size()) - 1))]);
  }
}

}  // namespace
}  // namespace replayeval::testing
