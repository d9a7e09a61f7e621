// The per-head scalars of scalars.h on the GPU.
#pragma once

#include "kernels/mamba2/mamba2.h"

#include <cstdint>

namespace replayeval::mamba2::cuda {

__device__ __forceinline__ float time_step(float raw, float bias, float dt_min, float dt_max) {
  const float shifted = raw + bias;
  const float dt = shifted > 20.0F ? shifted : log1pf(expf(shifted));
  if (dt < dt_min) return dt_min;  // comparisons that are false for NaN, which must survive
  return dt > dt_max ? dt_max : dt;
}

__device__ __forceinline__ float decay_rate(float a_log) { return -expf(a_log); }

// Fills weight[0..count) and scale (see scalars.h); a thread takes the entries first, first + step, …
__device__ __forceinline__ void ring_weights(Flush flush, float rate, const float* dt, int count, float* weight,
                                             float* scale, int first, int step) {
  if (flush == Flush::sequential) {
    for (int j = first; j < count; j += step) {
      weight[j] = dt[j];
      scale[j] = expf(rate * dt[j]);
    }
    return;
  }
  // Entry `count` stands for g, whose sum runs down to the oldest; every sum runs from the newest down.
  for (int j = first; j <= count; j += step) {
    const int oldest = j == count ? 0 : j + 1;
    float after = 0.0F;
    for (int i = count - 1; i >= oldest; --i) after = after + dt[i];
    if (j == count) {
      scale[0] = count == 0 ? 1.0F : expf(rate * after);
    } else {
      weight[j] = j + 1 == count ? dt[j] : dt[j] * expf(rate * after);
    }
  }
}

}  // namespace replayeval::mamba2::cuda
