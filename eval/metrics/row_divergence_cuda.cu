// A block takes a row, which stays in the L2 cache from one sweep to the next.
#include <cuda_runtime.h>

#include <cmath>
#include <stdexcept>
#include <string>

#include "eval/metrics/row_divergence_cuda.h"

namespace replayeval::metrics {
namespace {

constexpr int kThreads = 512;
constexpr int kWarps = kThreads / 32;
constexpr double kLargestExponent = 600.0;  // as row_divergence.cpp has it

struct Extremes {
  double max, second, min;
  std::int64_t place;  // of the largest, the first of several
  int finite;
};

__device__ Extremes merged(const Extremes& a, const Extremes& b) {
  const bool other = b.max > a.max || (b.max == a.max && b.place < a.place);
  return {other ? b.max : a.max, fmax(fmin(a.max, b.max), fmax(a.second, b.second)), fmin(a.min, b.min),
          other ? b.place : a.place, a.finite & b.finite};
}

__device__ Extremes from_lane(const Extremes& own, int distance) {
  constexpr unsigned all = 0xFFFFFFFFU;
  return {__shfl_xor_sync(all, own.max, distance), __shfl_xor_sync(all, own.second, distance),
          __shfl_xor_sync(all, own.min, distance), __shfl_xor_sync(all, own.place, distance),
          __shfl_xor_sync(all, own.finite, distance)};
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
      value, [](double own, int distance) { return __shfl_xor_sync(0xFFFFFFFFU, own, distance); },
      [](double a, double b) { return a + b; });
}

__device__ Extremes block_extremes(const float* logits, std::int64_t vocab) {
  const double infinity = INFINITY;
  Extremes own = {-infinity, -infinity, infinity, vocab, 1};
  for (std::int64_t i = threadIdx.x; i < vocab; i += kThreads) {
    const double logit = logits[i];
    own.finite &= isfinite(logit) ? 1 : 0;
    own.min = fmin(own.min, logit);
    if (logit > own.max) {
      own.second = own.max;
      own.max = logit;
      own.place = i;
    } else {
      own.second = fmax(own.second, logit);
    }
  }
  return over_block(own, from_lane, merged);
}

__global__ void __launch_bounds__(kThreads)
    describe_kernel(const float* all_logits, const std::int64_t* targets, std::int64_t vocab, RowFacts* facts) {
  const std::int64_t row = blockIdx.x;
  const float* logits = all_logits + row * vocab;
  const Extremes extremes = block_extremes(logits, vocab);
  const float at_target = logits[targets[row]];
  double sum = 0.0, above = 0.0;
  for (std::int64_t i = threadIdx.x; i < vocab; i += kThreads) {
    sum += exp(static_cast<double>(logits[i]) - extremes.max);
    above += logits[i] > at_target ? 1.0 : 0.0;
  }
  sum = block_sum(sum);
  above = block_sum(above);
  if (threadIdx.x != 0) return;
  RowFacts& out = facts[row];
  out.finite = extremes.finite;
  out.max = extremes.max;
  out.min = extremes.min;
  out.second = extremes.second;
  out.sum = sum;
  out.log_prob = (static_cast<double>(at_target) - extremes.max) - log(sum);
  out.rank = 1.0 + above;
  out.top1 = static_cast<double>(extremes.place);
  out.kl = 0.0;
}

// exp(-c) - 1 + c, by its series where that cancels.
__device__ double excess(double c) {
  if (fabs(c) < 1e-3) return c * c * (0.5 - c * (1.0 / 6.0 - c * (1.0 / 24.0 - c / 120.0)));
  return expm1(-c) + c;
}

// Forms (1) and (2) of row_divergence.h.
__global__ void __launch_bounds__(kThreads)
    compare_kernel(const float* all_baseline, const RowFacts* baseline_facts, const float* all_logits,
                   std::int64_t vocab, RowFacts* facts) {
  const std::int64_t row = blockIdx.x;
  const RowFacts base = baseline_facts[row], own = facts[row];
  if (base.finite == 0.0 || own.finite == 0.0) return;
  const float *z = all_baseline + row * vocab, *w = all_logits + row * vocab;
  double sum = 0.0;
  for (std::int64_t i = threadIdx.x; i < vocab; i += kThreads)
    sum += exp(static_cast<double>(z[i]) - base.max) * (static_cast<double>(z[i]) - static_cast<double>(w[i]));
  const double mu = block_sum(sum) / base.sum;
  double kl = mu - (base.max - own.max) - (log(base.sum) - log(own.sum));
  if (kl < small_divergence && own.max - base.min + mu < kLargestExponent) {
    double close = 0.0;
    for (std::int64_t i = threadIdx.x; i < vocab; i += kThreads)
      close += exp(static_cast<double>(z[i]) - base.max) *
               excess(static_cast<double>(z[i]) - static_cast<double>(w[i]) - mu);
    kl = log1p(block_sum(close) / base.sum);
  }
  if (threadIdx.x == 0) facts[row].kl = fmax(kl, 0.0);
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

void compare_rows_on_gpu(void* stream, const float* baseline, const RowFacts* baseline_facts, const float* logits,
                         std::int64_t rows, std::int64_t vocab, RowFacts* facts) {
  if (rows == 0) return;
  compare_kernel<<<static_cast<unsigned>(rows), kThreads, 0, static_cast<cudaStream_t>(stream)>>>(
      baseline, baseline_facts, logits, vocab, facts);
  expect_launched("comparing logits");
}

}  // namespace replayeval::metrics
