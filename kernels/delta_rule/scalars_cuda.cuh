// scalars.h on the GPU.
#pragma once

#include "kernels/delta_rule/delta_rule.h"
#include "kernels/storage_cuda.cuh"

namespace replayeval::delta_rule::cuda {

using namespace replayeval::cuda;

__device__ __forceinline__ float sigmoid(float value) { return 1.0F / (1.0F + expf(-value)); }

__device__ __forceinline__ float softplus(float value) { return value > 20.0F ? value : log1pf(expf(value)); }

__device__ __forceinline__ float at_precision(float value, Precision precision, Dtype compute) {
  if (precision == Precision::float32 || compute == Dtype::float32) return value;
  return compute == Dtype::bfloat16 ? rounded<Dtype::bfloat16>(value, false) : rounded<Dtype::float16>(value, false);
}

__device__ __forceinline__ float beta_of(float raw, const Parameters& p, Dtype compute) {
  const float beta = at_precision(sigmoid(raw), p.numerics.beta, compute);
  return p.allow_neg_eigval ? 2.0F * beta : beta;
}

__device__ __forceinline__ float log_decay_of(float raw, float bias, float rate, const Parameters& p, Dtype compute) {
  const float shifted = raw + bias;
  const float g = p.gate == Gate::bounded ? p.lower_bound * sigmoid(rate * shifted) : -rate * softplus(shifted);
  return at_precision(g, p.numerics.log_decay, compute);
}

}  // namespace replayeval::delta_rule::cuda
