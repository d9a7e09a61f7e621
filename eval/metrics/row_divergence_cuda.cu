// One sweep over a row of the baseline's and the arm's logits finds everything, because exponentials need no maximum
// that is exact: a block takes both rows, and what it subtracts of each, its `reference`, is the largest of the row's
// first logits. With r_z, r_w the references, c = (z - w) - (r_z - r_w), e = exp(z - r_z) and E[.] = sum(e .) / sum(e),
//   sum(exp(w - r_w)) = sum(e exp(-c)),   X = E[exp(-c) - 1 + c],   s = E[c]
//   KL = log(1 + X - s) + s = X + (log(1 + y) - y),   y = X - s                                                  (3)
// which is (2) of row_divergence.h where s = 0 and else loses the digits that s^2 / KL has: no more than those of 1 / p
// if the logit after which the reference is named has probability p. What is further out, and logits far above or below
// a reference, are done again by (1) and (2) with what the sweep found.
#include <cuda_runtime.h>

#include <climits>
#include <cmath>
#include <stdexcept>
#include <string>

#include "eval/metrics/exp_cuda.cuh"
#include "eval/metrics/row_divergence_cuda.h"

namespace replayeval::metrics {
namespace {

constexpr int kThreads = 256;
constexpr int kBlocks = 3;  // at once, with 80 registers a thread
constexpr int kWarps = kThreads / 32;
constexpr int kTogether = 4;                 // logits of a thread, side by side
constexpr double kLargestExponent = 600.0;   // as row_divergence.cpp has it
constexpr double kMostCancelled = 0x1p16;    // of s^2 / KL in (3)
constexpr double kSeriesEnd = 0.25;          // of exp(-c) - 1 + c
constexpr int kShortSeriesEnd = 0x3F900000;  // the upper half of 2^-6
constexpr unsigned kAllLanes = 0xFFFFFFFFU;

// Of a row, or a thread's part of it.
struct Extremes {
  float max = -INFINITY, second = -INFINITY, min = INFINITY;
  int place = INT_MAX;  // of the largest, the first of several
  int above = 0;        // how many exceed the target's
  float taint = 0.0F;   // 0 unless a logit is not finite

  __device__ __forceinline__ void see(float logit, int at, float at_target) {
    taint = fmaf(logit, 0.0F, taint);
    min = fminf(min, logit);
    second = fmaxf(second, fminf(max, logit));
    place = logit > max ? at : place;
    max = fmaxf(max, logit);
    above += logit > at_target ? 1 : 0;
  }
};

__device__ Extremes merged(const Extremes& a, const Extremes& b) {
  const bool other = b.max > a.max || (b.max == a.max && b.place < a.place);
  return {other ? b.max : a.max, fmaxf(fminf(a.max, b.max), fmaxf(a.second, b.second)),
          fminf(a.min, b.min),   other ? b.place : a.place,
          a.above + b.above,     a.taint + b.taint};
}

__device__ Extremes from_lane(const Extremes& own, int distance) {
  return {__shfl_xor_sync(kAllLanes, own.max, distance),   __shfl_xor_sync(kAllLanes, own.second, distance),
          __shfl_xor_sync(kAllLanes, own.min, distance),   __shfl_xor_sync(kAllLanes, own.place, distance),
          __shfl_xor_sync(kAllLanes, own.above, distance), __shfl_xor_sync(kAllLanes, own.taint, distance)};
}

// Every thread gets the result; the order is fixed.
template <class Value, class FromLane, class Merge>
__device__ Value over_block(Value value, const FromLane& from, const Merge& merge) {
  __shared__ Value warps[kWarps];
  for (int distance = 16; distance >= 1; distance /= 2) value = merge(value, from(value, distance));
  __syncthreads();  // an earlier call's values have been read
  if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = value;
  __syncthreads();
  Value all = warps[0];
  for (int warp = 1; warp < kWarps; ++warp) all = merge(all, warps[warp]);
  return all;
}

__device__ double block_sum(double value) {
  return over_block(
      value, [](double own, int distance) { return __shfl_xor_sync(kAllLanes, own, distance); },
      [](double a, double b) { return a + b; });
}

__device__ float block_max(float value) {
  return over_block(
      value, [](float own, int distance) { return __shfl_xor_sync(kAllLanes, own, distance); },
      [](float a, float b) { return fmaxf(a, b); });
}

// Which thread has which logit is the same however they are loaded.
struct Row {
  const float* logits;
  int count;
  bool fours;  // whether every fourth logit lies at a multiple of 16 bytes

  __device__ __forceinline__ Row(const float* all, std::int64_t row, std::int64_t vocab)
      : logits(all + row * vocab),
        count(static_cast<int>(vocab)),
        fours(reinterpret_cast<std::uintptr_t>(logits) % 16 == 0) {}

  __device__ __forceinline__ void load(int at, float (&to)[kTogether]) const {
    if (at + kTogether > count) return;
    if (fours) {
      const float4 four = __ldcs(reinterpret_cast<const float4*>(logits + at));
      to[0] = four.x, to[1] = four.y, to[2] = four.z, to[3] = four.w;
    } else {
#pragma unroll
      for (int i = 0; i < kTogether; ++i) to[i] = logits[at + i];
    }
  }

  __device__ float reference() const {
    float largest = -INFINITY;
    for (int i = 0; i < kTogether; ++i) {
      const int at = static_cast<int>(threadIdx.x) * kTogether + i;
      if (at < count) largest = fmaxf(largest, logits[at]);
    }
    return block_max(largest);
  }
};

// 1 / (k + 2)!; in constant memory, which instructions read in passing.
__constant__ double kSeries[9] = {1.0 / 2.0,    1.0 / 6.0,     1.0 / 24.0,     1.0 / 120.0,    1.0 / 720.0,
                                  1.0 / 5040.0, 1.0 / 40320.0, 1.0 / 362880.0, 1.0 / 3628800.0};

// exp(-c) - 1 + c by kTerms of its series c^2 (1/2! - c/3! + c^2/4! - ...): 5 have a relative error below 4e-13 up to
// 2^-6, 9 up to 1/4.
template <int kTerms>
__device__ __forceinline__ double excess_by_series(double c) {
  double series = kSeries[kTerms - 1];
#pragma unroll
  for (int k = kTerms - 2; k >= 0; --k) series = fma(-c, series, kSeries[k]);
  return c * c * series;
}

// A thread's share of a row's sum of exponentials, of two rows' sums of (3).
struct PairSums {
  double z = 0.0, w = 0.0, shift = 0.0, excess = 0.0;  // of e, exp(w - r_w), e c, e (exp(-c) - 1 + c)

  template <int kCount>
  __device__ __forceinline__ void add(const double (&from_z)[kCount], const double (&from_w)[kCount]) {
    double e[kCount], other[kCount], c[kCount];
    int largest = 0;
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      e[i] = bounded_exp(from_z[i]);
      other[i] = bounded_exp(from_w[i]);
      c[i] = from_z[i] - from_w[i];
      largest = max(largest, __double2hiint(c[i]) & INT_MAX);
      z = __dadd_rn(z, e[i]);
      w = __dadd_rn(w, other[i]);
      shift = fma(e[i], c[i], shift);
    }
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      if (largest <= kShortSeriesEnd) {
        excess = fma(e[i], excess_by_series<5>(c[i]), excess);
      } else {
        const double direct = (other[i] - e[i]) + e[i] * c[i];
        excess += fabs(c[i]) <= kSeriesEnd ? e[i] * excess_by_series<9>(c[i]) : direct;
      }
    }
  }
};

// A row's own facts; `sum`: of exp(logit - reference).
__device__ void describe(const Extremes& extremes, double at_target, double reference, double sum, RowFacts& out) {
  out.finite = 1.0;
  out.max = extremes.max;
  out.second = extremes.second;
  out.log_prob = (at_target - reference) - log(sum);
  out.rank = 1.0 + extremes.above;
  out.top1 = extremes.place;
  out.kl = 0.0;
}

// What is left of a row that has a logit that is not finite: the first of those.
__device__ __noinline__ void describe_flaw(const Row& row, RowFacts* out) {
  int place = row.count;
  for (int i = static_cast<int>(threadIdx.x); i < row.count && place == row.count; i += kThreads)
    if (!isfinite(row.logits[i])) place = i;
  place = over_block(
      place, [](int own, int distance) { return __shfl_xor_sync(kAllLanes, own, distance); },
      [](int a, int b) { return min(a, b); });
  if (threadIdx.x != 0 || out == nullptr) return;
  out->finite = 0.0;
  out->top1 = place;
  out->max = row.logits[place];
  out->kl = 0.0;
}

// Whether all logits are in bounded_exp()'s range of the reference.
__device__ bool in_range(const Extremes& extremes, double reference) {
  return extremes.max - reference <= kExpRange && reference - extremes.min <= kExpDepth;
}

// sum(exp(logit - max)), for any logits.
__device__ __noinline__ double careful_sum(const Row& row, double max) {
  double sum = 0.0;
  for (int i = static_cast<int>(threadIdx.x); i < row.count; i += kThreads)
    sum += exp(static_cast<double>(row.logits[i]) - max);
  return block_sum(sum);
}

// exp(-c) - 1 + c, by its series where that cancels.
__device__ double excess(double c) {
  if (fabs(c) < 1e-3) return c * c * (0.5 - c * (1.0 / 6.0 - c * (1.0 / 24.0 - c / 120.0)));
  return expm1(-c) + c;
}

// Forms (1) and (2) of row_divergence.h, for any logits.
__device__ __noinline__ double careful_divergence(const Row& z, const Extremes& of_z, const Row& w,
                                                  const Extremes& of_w) {
  const double max_z = of_z.max, max_w = of_w.max;
  const double sum_z = careful_sum(z, max_z), sum_w = careful_sum(w, max_w);
  const auto difference = [&](int i) { return static_cast<double>(z.logits[i]) - static_cast<double>(w.logits[i]); };
  double sum = 0.0;
  for (int i = static_cast<int>(threadIdx.x); i < z.count; i += kThreads)
    sum += exp(static_cast<double>(z.logits[i]) - max_z) * difference(i);
  const double mu = block_sum(sum) / sum_z;
  const double kl = mu - (max_z - max_w) - (log(sum_z) - log(sum_w));
  if (kl >= small_divergence || max_w - of_z.min + mu >= kLargestExponent) return fmax(kl, 0.0);
  double close = 0.0;
  for (int i = static_cast<int>(threadIdx.x); i < z.count; i += kThreads)
    close += exp(static_cast<double>(z.logits[i]) - max_z) * excess(difference(i) - mu);
  return log1p(block_sum(close) / sum_z);
}

// log(1 + y) - y, by its series where that cancels: -y^2 (1/2 - y/3 + y^2/4 - ...).
__device__ double log1p_excess(double y) {
  if (fabs(y) > 0x1p-5) return log1p(y) - y;
  double series = 0.0;
  for (int k = 12; k >= 2; --k) series = 1.0 / k - y * series;
  return -y * y * series;
}

// KL by (3); sets `lost` where that keeps too few digits.
__device__ double divergence(const PairSums& sums, bool& lost) {
  const double s = sums.shift / sums.z;
  const double X = sums.excess / sums.z;
  const double y = X - s;
  const double kl = fabs(y) <= 0.5 ? X + log1p_excess(y) : s + (log(sums.w) - log(sums.z));
  lost = s * s > kMostCancelled * kl;
  return fmax(kl, 0.0);
}

__global__ void __launch_bounds__(kThreads, kBlocks)
    describe_kernel(const float* all, const std::int64_t* targets, std::int64_t vocab, RowFacts* facts) {
  const std::int64_t number = blockIdx.x;
  const Row row(all, number, vocab);
  const float at_target = row.logits[targets[number]];
  const float reference = row.reference();
  Extremes extremes;
  double sum = 0.0;
  const auto see = [&](int at, float logit) {
    extremes.see(logit, at, at_target);
    sum = __dadd_rn(sum, bounded_exp(static_cast<double>(logit) - reference));
  };
  for (int at = static_cast<int>(threadIdx.x) * kTogether; at < row.count; at += kThreads * kTogether) {
    float logits[kTogether];
    row.load(at, logits);
#pragma unroll
    for (int i = 0; i < kTogether; ++i) {
      if (at + kTogether <= row.count) {
        see(at + i, logits[i]);
      } else if (at + i < row.count) {
        see(at + i, row.logits[at + i]);
      }
    }
  }
  sum = block_sum(sum);
  extremes = over_block(extremes, from_lane, merged);
  if (extremes.taint != 0.0F) return describe_flaw(row, facts + number);
  const bool in = in_range(extremes, reference);
  if (!in) sum = careful_sum(row, extremes.max);
  if (threadIdx.x == 0) describe(extremes, at_target, in ? reference : extremes.max, sum, facts[number]);
}

__global__ void __launch_bounds__(kThreads, kBlocks)
    compare_kernel(const float* baseline, const float* all, const std::int64_t* targets, std::int64_t vocab,
                   RowFacts* baseline_facts, RowFacts* facts) {
  const std::int64_t number = blockIdx.x;
  const Row z(baseline, number, vocab), w(all, number, vocab);
  const float target_z = z.logits[targets[number]], target_w = w.logits[targets[number]];
  const float reference_z = z.reference(), reference_w = w.reference();
  Extremes of_z, of_w;
  PairSums sums;
  const int stride = kThreads * kTogether;
  int at = static_cast<int>(threadIdx.x) * kTogether;
  float next_z[kTogether] = {}, next_w[kTogether] = {};
  z.load(at, next_z);
  w.load(at, next_w);
  for (; at + kTogether <= z.count; at += stride) {
    double from_z[kTogether], from_w[kTogether];
#pragma unroll
    for (int i = 0; i < kTogether; ++i) {
      of_z.see(next_z[i], at + i, target_z);
      of_w.see(next_w[i], at + i, target_w);
      from_z[i] = static_cast<double>(next_z[i]) - reference_z;
      from_w[i] = static_cast<double>(next_w[i]) - reference_w;
    }
    z.load(at + stride, next_z);
    w.load(at + stride, next_w);
    sums.add(from_z, from_w);
  }
  for (; at < z.count; ++at) {  // one thread's, of fewer than kTogether
    of_z.see(z.logits[at], at, target_z);
    of_w.see(w.logits[at], at, target_w);
    const double from_z[1] = {static_cast<double>(z.logits[at]) - reference_z};
    const double from_w[1] = {static_cast<double>(w.logits[at]) - reference_w};
    sums.add(from_z, from_w);
  }
  sums = {block_sum(sums.z), block_sum(sums.w), block_sum(sums.shift), block_sum(sums.excess)};
  of_z = over_block(of_z, from_lane, merged);
  of_w = over_block(of_w, from_lane, merged);
  RowFacts* const out_z = baseline_facts == nullptr ? nullptr : baseline_facts + number;
  if (of_w.taint != 0.0F) describe_flaw(w, facts + number);
  if (of_z.taint != 0.0F) describe_flaw(z, out_z);
  const bool in_z = in_range(of_z, reference_z), in_w = in_range(of_w, reference_w);
  bool careful = !in_z || !in_w;
  double kl = careful ? 0.0 : divergence(sums, careful);
  if (of_z.taint != 0.0F || of_w.taint != 0.0F) careful = false;  // it does not count
  if (careful) kl = careful_divergence(z, of_z, w, of_w);
  if (!in_z) sums.z = careful_sum(z, of_z.max);
  if (!in_w) sums.w = careful_sum(w, of_w.max);
  if (threadIdx.x != 0) return;
  if (of_z.taint == 0.0F && out_z != nullptr) describe(of_z, target_z, in_z ? reference_z : of_z.max, sums.z, *out_z);
  if (of_w.taint != 0.0F) return;
  describe(of_w, target_w, in_w ? reference_w : of_w.max, sums.w, facts[number]);
  facts[number].kl = kl;
}

void expect_launched(const char* what) {
  const cudaError_t status = cudaGetLastError();
  if (status != cudaSuccess) throw std::runtime_error(std::string(what) + ": " + cudaGetErrorString(status));
}

}  // namespace

void describe_rows_on_gpu(void* stream, const float* logits, const std::int64_t* targets, std::int64_t rows,
                          std::int64_t vocab, RowFacts* facts) {
  if (rows == 0) return;
  describe_kernel<<<static_cast<unsigned>(rows), kThreads, 0, static_cast<cudaStream_t>(stream)>>>(logits, targets,
                                                                                                   vocab, facts);
  expect_launched("scoring logits");
}

void compare_rows_on_gpu(void* stream, const float* baseline, const float* logits, const std::int64_t* targets,
                         std::int64_t rows, std::int64_t vocab, RowFacts* baseline_facts, RowFacts* facts) {
  if (rows == 0) return;
  compare_kernel<<<static_cast<unsigned>(rows), kThreads, 0, static_cast<cudaStream_t>(stream)>>>(
      baseline, logits, targets, vocab, baseline_facts, facts);
  expect_launched("comparing logits");
}

}  // namespace replayeval::metrics
