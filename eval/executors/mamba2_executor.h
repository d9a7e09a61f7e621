// One Mamba-2 mixer under one arm: convolution, recurrence (exact or replay) and gated norm on the mixer's input,
// with the caches that belong to the arm. The comparator runs these on the side to measure state error.
#pragma once

#include <ATen/core/Tensor.h>

#include "eval/executors/arm.h"
#include "eval/executors/kernel_clock.h"
#include "kernels/mamba2/gated_norm.h"

namespace replayeval {

// What a mixer needs beside its input; tensors live on the model's device.
struct Mamba2Mixer {
  mamba2::Shape shape;
  std::int64_t conv_kernel = 4;
  at::Tensor conv_weight;  // [conv_dim, conv_kernel] float32; conv_dim = heads * head_dim + 2 * groups * state_size
  at::Tensor conv_bias;    // [conv_dim] float32, or undefined
  at::Tensor A_log, D, dt_bias;  // [num_heads] float32
  float dt_min = 0.0F, dt_max = 0.0F;
  mamba2::GateForm gate_form = mamba2::GateForm::gate_then_norm;
  at::Tensor norm_weight;            // [num_heads * head_dim] float32, or undefined for gate_only
  std::int64_t norm_group_size = 0;  // a divisor of num_heads * head_dim
  float norm_eps = 1e-5F;
  std::int64_t projection_size() const;  // width of in_proj's output: z | x | B | C | dt
};

// One arm's caches of one mixer. `cursor` [slots] int32 is shared by all mixers of the arm and moved once per step.
struct Mamba2Cache {
  at::Tensor state;                    // [slots, num_heads, head_dim, state_size], state storage dtype
  at::Tensor conv_state;               // [slots, conv_dim, conv_kernel - 1], compute dtype
  at::Tensor ring_x, ring_B, ring_dt;  // replay only
  at::Tensor cursor;                   // replay only
  at::Tensor counts;                   // [3] int64: saturated, subnormal, non_finite
};

Mamba2Cache make_mamba2_cache(const Mamba2Mixer&, const Arm&, std::int64_t slots, at::ScalarType compute_dtype,
                              const at::Device&, at::Tensor shared_cursor = {});

struct Mamba2Result {
  at::Tensor y;     // [B, T, num_heads * head_dim]: the recurrence's output, compute dtype
  at::Tensor out;   // [B, T, num_heads * head_dim]: after gate and norm, ready for out_proj
  at::Tensor conv;  // [B, T, conv_dim]: x | B | C as the recurrence saw them
};

// projected: [B, T, projection_size] in compute dtype, the output of in_proj. Does not move the cursor.
// slots: [B] int32 on the device, or undefined for the identity. Throws std::invalid_argument on other shapes and
// types.
Mamba2Result run_mamba2(const Mamba2Mixer&, const Arm&, Mamba2Cache&, const at::Tensor& projected,
                        const at::Tensor& slots = {}, KernelClock* clock = nullptr);

// cursor[slot] = (cursor[slot] + tokens) % buffer_len; nothing for exact arms.
void advance_cursor(const Arm&, const at::Tensor& cursor, std::int64_t batch, std::int64_t tokens,
                    const at::Tensor& slots = {});

// The state at the cache's present position, float32 [B, num_heads, head_dim, state_size]; for replay arms rebuilt
// from checkpoint and ring.
at::Tensor present_state(const Mamba2Mixer&, const Arm&, const Mamba2Cache&, std::int64_t batch,
                         const at::Tensor& slots = {});

}  // namespace replayeval
