// The per-head scalars of a step, defined once for the exact and the replay executor and both modes (CPU).
#pragma once

#include "kernels/decode.h"

#include <cmath>
#include <cstddef>

namespace replayeval::mamba2 {

using replayeval::kMaxBufferLen;

// clamp(softplus(raw + bias), dt_min, dt_max) in float32; softplus(v) = v above 20, as published implementations do.
inline float time_step(float raw, float bias, float dt_min, float dt_max) {
  const float shifted = raw + bias;
  const float dt = shifted > 20.0F ? shifted : std::log1p(std::exp(shifted));
  if (dt < dt_min) return dt_min;  // comparisons that are false for NaN, which must survive
  return dt > dt_max ? dt_max : dt;
}

inline float decay_rate(float a_log) { return -std::exp(a_log); }

// What the ring's entries 1..w weigh in S_w. summed: S_w = scale[0] S_0 + sum_j weight[j] x_j B_j^T;
// sequential: S <- scale[j] S + weight[j] x_j B_j^T for j = 1..w.
struct Weights {
  float weight[kMaxBufferLen];
  float scale[kMaxBufferLen];
};

// s_j = dt_j exp(A (dt_{j+1} + … + dt_w)), each sum running from w down; g likewise, down to dt_1.
// The last entry weighs dt_w itself and no entries leave S_0 as it is, also where the rate is infinite.
inline void summed_weights(float rate, const float* dt, std::size_t entries, Weights& out) {
  float after = 0.0F;
  for (std::size_t j = entries; j-- > 0;) {
    out.weight[j] = j + 1 == entries ? dt[j] : dt[j] * std::exp(rate * after);
    after = after + dt[j];
  }
  out.scale[0] = entries == 0 ? 1.0F : std::exp(rate * after);
}

inline void sequential_weights(float rate, const float* dt, std::size_t entries, Weights& out) {
  for (std::size_t j = 0; j < entries; ++j) {
    out.weight[j] = dt[j];
    out.scale[j] = std::exp(rate * dt[j]);
  }
}

}  // namespace replayeval::mamba2
