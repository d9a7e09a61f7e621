#include "eval/metrics/state_error.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>

namespace replayeval::metrics {

StateErrorAccumulator::StateErrorAccumulator(std::int64_t num_heads, std::int64_t elements) : elements_(elements) {
  if (num_heads < 1 || elements < 1)
    throw std::invalid_argument("state error over " + std::to_string(num_heads) + " heads of " +
                                std::to_string(elements) + " elements, expected at least 1 of each");
  heads_.resize(static_cast<std::size_t>(num_heads));
}

template <typename A, typename T>
void StateErrorAccumulator::add_all(std::span<const A> arm, std::span<const T> truth) {
  const std::size_t expected = heads_.size() * static_cast<std::size_t>(elements_);
  if (arm.size() != expected || truth.size() != expected)
    throw std::invalid_argument("state error: arm has " + std::to_string(arm.size()) + " and truth " +
                                std::to_string(truth.size()) + " elements, expected " + std::to_string(heads_.size()) +
                                " heads x " + std::to_string(elements_) + " = " + std::to_string(expected));
  std::vector<Sums> added = heads_;  // an element that is not finite leaves the sums as they were
  for (std::size_t i = 0; i < expected; ++i) {
    const auto a = static_cast<double>(arm[i]), t = static_cast<double>(truth[i]);
    if (!std::isfinite(a) || !std::isfinite(t))
      throw std::runtime_error(std::string(std::isfinite(a) ? "truth" : "arm") + " is not finite at head " +
                               std::to_string(i / static_cast<std::size_t>(elements_)) + ", element " +
                               std::to_string(i % static_cast<std::size_t>(elements_)));
    Sums& sums = added[i / static_cast<std::size_t>(elements_)];
    sums.error += (a - t) * (a - t);
    sums.arm += a * a;
    sums.truth += t * t;
    sums.product += a * t;
    sums.max_abs = std::max(sums.max_abs, std::abs(a - t));
  }
  heads_ = std::move(added);
  ++count_;
}

void StateErrorAccumulator::add(std::span<const float> arm, std::span<const float> truth) { add_all(arm, truth); }
void StateErrorAccumulator::add(std::span<const float> arm, std::span<const double> truth) { add_all(arm, truth); }
void StateErrorAccumulator::add(std::span<const double> arm, std::span<const double> truth) { add_all(arm, truth); }

ErrorNorms StateErrorAccumulator::norms_of(const Sums& sums) {
  ErrorNorms norms;
  norms.max_abs = sums.max_abs;
  norms.zero_truth = sums.truth == 0.0;
  if (norms.zero_truth) {
    const bool same = sums.arm == 0.0;
    norms.relative_frobenius = same ? 0.0 : 1.0;
    norms.cosine = same ? 1.0 : 0.0;
    return norms;
  }
  norms.relative_frobenius = std::sqrt(sums.error / sums.truth);
  // Equal vectors have cosine 1, not 1 - 1e-16; rounding must not carry it past 1 either.
  if (sums.error == 0.0)
    norms.cosine = 1.0;
  else if (sums.arm == 0.0)
    norms.cosine = 0.0;
  else
    norms.cosine = std::clamp(sums.product / (std::sqrt(sums.arm) * std::sqrt(sums.truth)), -1.0, 1.0);
  return norms;
}

StateErrorNorms StateErrorAccumulator::norms() const {
  if (count_ == 0) throw std::logic_error("state error of nothing: add() a state first");
  StateErrorNorms result;
  Sums total;
  for (const Sums& head : heads_) {
    result.heads.push_back(norms_of(head));
    total.error += head.error;
    total.arm += head.arm;
    total.truth += head.truth;
    total.product += head.product;
    total.max_abs = std::max(total.max_abs, head.max_abs);
  }
  result.all = norms_of(total);
  return result;
}

namespace {

template <typename A, typename T>
StateErrorNorms one_state(std::span<const A> arm, std::span<const T> truth, std::int64_t num_heads) {
  if (num_heads < 1 || arm.empty() || arm.size() % static_cast<std::size_t>(num_heads) != 0)
    throw std::invalid_argument("state error: " + std::to_string(arm.size()) + " elements, expected a multiple of " +
                                std::to_string(num_heads) + " heads");
  StateErrorAccumulator accumulator(num_heads, static_cast<std::int64_t>(arm.size()) / num_heads);
  accumulator.add(arm, truth);
  return accumulator.norms();
}

}  // namespace

StateErrorNorms state_error(std::span<const float> arm, std::span<const float> truth, std::int64_t num_heads) {
  return one_state(arm, truth, num_heads);
}
StateErrorNorms state_error(std::span<const float> arm, std::span<const double> truth, std::int64_t num_heads) {
  return one_state(arm, truth, num_heads);
}
StateErrorNorms state_error(std::span<const double> arm, std::span<const double> truth, std::int64_t num_heads) {
  return one_state(arm, truth, num_heads);
}

}  // namespace replayeval::metrics
