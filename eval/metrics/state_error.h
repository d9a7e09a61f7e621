// How far an arm's recurrent state (or its mixer's output) lies from the truth. Plain arrays, float64 sums.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace replayeval::metrics {

struct ErrorNorms {
  double relative_frobenius = 0.0;  // ||arm - truth|| / ||truth||
  double max_abs = 0.0;             // largest |arm - truth|
  double cosine = 1.0;              // <arm, truth> / (||arm|| ||truth||)
  bool zero_truth = false;          // ||truth|| == 0: both zero gives 0 and 1; a non-zero arm gives 1 and 0
};

struct StateErrorNorms {
  ErrorNorms all;                 // over all heads and everything added
  std::vector<ErrorNorms> heads;  // [num_heads]
};

// Sums over sequences: add() once per sequence, then norms(). Frobenius norms are pooled, not averaged: the root of the
// summed squared errors over the root of the summed squared truths.
class StateErrorAccumulator {
 public:
  // elements: per head, head_dim * state_size for a state, head_dim for an output.
  StateErrorAccumulator(std::int64_t num_heads, std::int64_t elements);

  // [num_heads, elements], row-major. Throws std::invalid_argument on another size, std::runtime_error on a value that
  // is not finite, naming head and element.
  void add(std::span<const float> arm, std::span<const float> truth);
  void add(std::span<const float> arm, std::span<const double> truth);
  void add(std::span<const double> arm, std::span<const double> truth);

  std::int64_t count() const { return count_; }
  StateErrorNorms norms() const;  // throws std::logic_error when nothing was added

 private:
  struct Sums {
    double error = 0.0, arm = 0.0, truth = 0.0, product = 0.0, max_abs = 0.0;  // first four: sums of squares, products
  };
  template <typename A, typename T>
  void add_all(std::span<const A> arm, std::span<const T> truth);
  static ErrorNorms norms_of(const Sums& sums);

  std::int64_t elements_ = 0, count_ = 0;
  std::vector<Sums> heads_;
};

// One sequence at once: arm and truth [num_heads, elements].
StateErrorNorms state_error(std::span<const float> arm, std::span<const float> truth, std::int64_t num_heads);
StateErrorNorms state_error(std::span<const float> arm, std::span<const double> truth, std::int64_t num_heads);
StateErrorNorms state_error(std::span<const double> arm, std::span<const double> truth, std::int64_t num_heads);

}  // namespace replayeval::metrics
