#include "eval/metrics/row_sweeps.h"

#include <algorithm>
#include <limits>

#include "kernels/targets.h"

// Highway's order: the target loop first.
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "eval/metrics/row_sweeps.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
#include <hwy/contrib/math/math-inl.h>
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace replayeval::metrics::sweeps {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Doubles = hn::ScalableTag<double>;
using Floats = hn::Rebind<float, Doubles>;  // as many floats as there are doubles in a vector
using Double = hn::Vec<Doubles>;

HWY_INLINE Double widen(const float* from) { return hn::PromoteTo(Doubles(), hn::LoadU(Floats(), from)); }

// The row's last, incomplete vector, filled up. Reading past the row could touch memory that is not ours.
HWY_INLINE Double widen_tail(const float* from, std::size_t count, float fill) {
  HWY_ALIGN float lanes[hn::MaxLanes(Floats())];
  for (std::size_t i = 0; i < hn::Lanes(Floats()); ++i) lanes[i] = i < count ? from[i] : fill;
  return hn::PromoteTo(Doubles(), hn::Load(Floats(), lanes));
}

// Adds body(vector, place) over the row, four independent sums for the latency of the adder.
template <class Body>
HWY_INLINE double sum_over(std::size_t count, const Body& body) {
  const Doubles d;
  const std::size_t lanes = hn::Lanes(d);
  Double sum0 = hn::Zero(d), sum1 = hn::Zero(d), sum2 = hn::Zero(d), sum3 = hn::Zero(d);
  std::size_t i = 0;
  for (; i + 4 * lanes <= count; i += 4 * lanes) {
    sum0 = hn::Add(sum0, body(i, lanes));
    sum1 = hn::Add(sum1, body(i + lanes, lanes));
    sum2 = hn::Add(sum2, body(i + 2 * lanes, lanes));
    sum3 = hn::Add(sum3, body(i + 3 * lanes, lanes));
  }
  for (; i + lanes <= count; i += lanes) sum0 = hn::Add(sum0, body(i, lanes));
  if (i < count) sum1 = hn::Add(sum1, body(i, count - i));
  const Double sum = hn::Add(hn::Add(sum0, sum1), hn::Add(sum2, sum3));
  return hn::GetLane(hn::SumOfLanes(d, sum));
}

HWY_INLINE Double load(const float* row, std::size_t place, std::size_t present, float fill) {
  return present == hn::Lanes(Doubles()) ? widen(row + place) : widen_tail(row + place, present, fill);
}

Extremes extremes_impl(const float* logits, std::size_t count) {
  const hn::ScalableTag<float> d;
  const std::size_t lanes = hn::Lanes(d);
  const float infinity = std::numeric_limits<float>::infinity();
  auto low = hn::Set(d, infinity), first = hn::Set(d, -infinity), second = hn::Set(d, -infinity);
  auto taint = hn::Zero(d);  // 0 * x is 0 unless x is infinite or NaN
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const auto x = hn::LoadU(d, logits + i);
    taint = hn::MulAdd(x, hn::Zero(d), taint);
    low = hn::Min(low, x);
    second = hn::Max(second, hn::Min(first, x));
    first = hn::Max(first, x);
  }
  HWY_ALIGN float lows[hn::MaxLanes(d)], firsts[hn::MaxLanes(d)], seconds[hn::MaxLanes(d)];
  hn::Store(low, d, lows);
  hn::Store(first, d, firsts);
  hn::Store(second, d, seconds);
  float tail_taint = hn::GetLane(hn::SumOfLanes(d, taint));
  float lowest = infinity, best = -infinity, runner_up = -infinity;
  const auto meet = [&](float x) {
    runner_up = std::max(runner_up, std::min(best, x));
    best = std::max(best, x);
  };
  for (std::size_t lane = 0; lane < lanes; ++lane) {
    lowest = std::min(lowest, lows[lane]);
    meet(firsts[lane]);
    meet(seconds[lane]);
  }
  for (; i < count; ++i) {
    tail_taint += logits[i] * 0.0F;
    lowest = std::min(lowest, logits[i]);
    meet(logits[i]);
  }
  return {lowest, best, runner_up, tail_taint == 0.0F};
}

double exponentials_impl(const float* logits, std::size_t count, double max, double* out) {
  const Doubles d;
  const Double shift = hn::Set(d, max);
  return sum_over(count, [&](std::size_t i, std::size_t present) HWY_ATTR {
    const Double x = load(logits, i, present, std::numeric_limits<float>::lowest());
    const Double e = hn::Exp(d, hn::Max(hn::Sub(x, shift), hn::Set(d, -800.0)));  // exp(-800) is 0
    hn::StoreU(e, d, out + i);
    return e;
  });
}

double sum_of_exponentials_impl(const float* logits, std::size_t count, double max) {
  const Doubles d;
  const Double shift = hn::Set(d, max);
  return sum_over(count, [&](std::size_t i, std::size_t present) HWY_ATTR {
    const Double x = load(logits, i, present, std::numeric_limits<float>::lowest());
    return hn::Exp(d, hn::Max(hn::Sub(x, shift), hn::Set(d, -800.0)));
  });
}

double weighted_difference_impl(const double* weight, const float* z, const float* w, std::size_t count) {
  const Doubles d;
  return sum_over(count, [&](std::size_t i, std::size_t present) HWY_ATTR {
    const Double difference = hn::Sub(load(z, i, present, 0.0F), load(w, i, present, 0.0F));
    return hn::Mul(hn::LoadU(d, weight + i), difference);
  });
}

// exp(-c) - 1 + c. Where that cancels, its series: c^2 (1/2! - c/3! + c^2/4! - ... + c^10/12!).
HWY_INLINE Double excess(Double c) {
  const Doubles d;
  const auto term = [&](double factorial) HWY_ATTR { return hn::Set(d, 1.0 / factorial); };
  Double series = term(479001600.0);
  series = hn::NegMulAdd(c, series, term(39916800.0));
  series = hn::NegMulAdd(c, series, term(3628800.0));
  series = hn::NegMulAdd(c, series, term(362880.0));
  series = hn::NegMulAdd(c, series, term(40320.0));
  series = hn::NegMulAdd(c, series, term(5040.0));
  series = hn::NegMulAdd(c, series, term(720.0));
  series = hn::NegMulAdd(c, series, term(120.0));
  series = hn::NegMulAdd(c, series, term(24.0));
  series = hn::NegMulAdd(c, series, term(6.0));
  series = hn::NegMulAdd(c, series, term(2.0));
  series = hn::Mul(hn::Mul(c, c), series);
  const auto small = hn::Le(hn::Abs(c), hn::Set(d, 0.25));
  if (hn::AllTrue(d, small)) return series;
  const Double plain = hn::Add(hn::Sub(hn::Exp(d, hn::Neg(hn::Min(c, hn::Set(d, 800.0)))), hn::Set(d, 1.0)), c);
  return hn::IfThenElse(small, series, plain);
}

double weighted_excess_impl(const double* weight, const float* z, const float* w, std::size_t count, double mu) {
  const Doubles d;
  const Double center = hn::Set(d, mu);
  return sum_over(count, [&](std::size_t i, std::size_t present) HWY_ATTR {
    const Double difference = hn::Sub(load(z, i, present, 0.0F), load(w, i, present, 0.0F));
    return hn::Mul(hn::LoadU(d, weight + i), excess(hn::Sub(difference, center)));
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace replayeval::metrics::sweeps
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace replayeval::metrics::sweeps {

HWY_EXPORT(extremes_impl);
HWY_EXPORT(exponentials_impl);
HWY_EXPORT(sum_of_exponentials_impl);
HWY_EXPORT(weighted_difference_impl);
HWY_EXPORT(weighted_excess_impl);

Extremes extremes(const float* logits, std::size_t count) { return HWY_DYNAMIC_DISPATCH(extremes_impl)(logits, count); }

double exponentials(const float* logits, std::size_t count, double max, double* out) {
  const double sum = HWY_DYNAMIC_DISPATCH(exponentials_impl)(logits, count, max, out);
  std::fill(out + count, out + count + padding, 0.0);
  return sum;
}

double sum_of_exponentials(const float* logits, std::size_t count, double max) {
  return HWY_DYNAMIC_DISPATCH(sum_of_exponentials_impl)(logits, count, max);
}

double weighted_difference(const double* weight, const float* z, const float* w, std::size_t count) {
  return HWY_DYNAMIC_DISPATCH(weighted_difference_impl)(weight, z, w, count);
}

double weighted_excess(const double* weight, const float* z, const float* w, std::size_t count, double mu) {
  return HWY_DYNAMIC_DISPATCH(weighted_excess_impl)(weight, z, w, count, mu);
}

}  // namespace replayeval::metrics::sweeps
#endif
