// The Mamba-2 decode recurrence, exact and replay (design: "The recurrences"; Dao & Gu 2024, eq. 16 of the
// SSD paper for the recurrence itself).
//
//   dt_t = clamp(softplus(dt_raw + dt_bias), dt_min, dt_max),  a_t = exp(-exp(A_log) dt_t)
//   S_t  = a_t S_{t-1} + dt_t x_t B_t^T          S: [head_dim, state_size]
//   y_t  = S_t C_t + D x_t
//
// One arithmetic, two modes: tokens == 1 is `stepwise`; tokens > 1 is `teacher_forced`, which keeps the state on
// chip and rounds it exactly where a chain of stepwise calls would store it. On one device both give the same bits,
// however a block of tokens is cut into calls, whatever the batch, the row order or the slot map.
//
// All functions are asynchronous on device.stream for CUDA. Arguments are checked at the door: a bad one throws
// std::invalid_argument with a message that says what was given and what is allowed. A CUDA failure throws
// std::runtime_error.
//
// The state, the ring's x and B and state_out are aligned to 16 bytes; inputs and y need no more than their element.
// Slot numbers and cursors that lie in GPU memory cannot be checked at the door: there, one out of range makes its
// row's y NaN and touches no cache.
#pragma once

#include "kernels/decode.h"

namespace replayeval::mamba2 {

using Block = replayeval::DecodeBlock;
using replayeval::Flush;
using replayeval::Output;  // y: [batch * tokens, num_heads, head_dim]
using replayeval::Route;
using replayeval::State;  // data: [slots, num_heads, head_dim, state_size]

// Allowed: head_dim a multiple of 8 up to 128, state_size a multiple of 8 up to 256, num_heads a multiple of
// num_groups. 64 x 128 is tuned.
struct Shape {
  std::int64_t num_heads = 0;
  std::int64_t num_groups = 0;
  std::int64_t head_dim = 0;
  std::int64_t state_size = 0;
};

struct ReplayForm {
  std::int64_t buffer_len = 16;       // 1..64
  Route route = Route::output_only;   // how y is computed between flushes; a flush takes the state route
  Flush flush = Flush::summed;        // how S_w is built wherever the state route is used
  Dtype ring_dtype = Dtype::float32;  // x and B in the ring: float32 or bfloat16; dt is float32 always
};

// Row r = b * tokens + t starts at pointer + r * stride (in elements); inside a row the layout is dense.
struct Inputs {
  const void* x = nullptr;   // [batch * tokens, num_heads, head_dim]
  const void* B = nullptr;   // [batch * tokens, num_groups, state_size]
  const void* C = nullptr;   // [batch * tokens, num_groups, state_size]
  const void* dt = nullptr;  // [batch * tokens, num_heads], before bias and softplus
  std::int64_t x_stride = 0, B_stride = 0, C_stride = 0, dt_stride = 0;
  Dtype dtype = Dtype::float32;  // of all four
};

struct Parameters {
  const float* A_log = nullptr;    // [num_heads]
  const float* D = nullptr;        // [num_heads]
  const float* dt_bias = nullptr;  // [num_heads]
  float dt_min = 0.0F;             // clamp after softplus; dt_max may be +infinity
  float dt_max = __builtin_inff();
};

// The last inputs of each slot. `cursor` is the number of tokens since the last flush (0..buffer_len-1); it belongs to
// the sequence, not to a layer, so it is read here and moved once per model step by advance_cursors().
struct Ring {
  void* x = nullptr;                     // [slots, num_heads, buffer_len, head_dim], ring_dtype
  void* B = nullptr;                     // [slots, num_groups, buffer_len, state_size], ring_dtype
  float* dt = nullptr;                   // [slots, num_heads, buffer_len], after softplus and clamp
  const std::int32_t* cursor = nullptr;  // [slots]
};

// Reads and writes the whole state at every token.
void exact(const Device&, const Shape&, const Block&, const Inputs&, const Parameters&, const State&, const Output&);

// Appends each token to the ring; writes the state only when the ring is full. The current token enters unrounded.
void replay(const Device&, const Shape&, const ReplayForm&, const Block&, const Inputs&, const Parameters&,
            const State&, const Ring&, const Output&);

// cursor[slot] = (cursor[slot] + tokens) % buffer_len for the block's rows.
void advance_cursors(const Device&, const Block&, std::int64_t buffer_len, std::int32_t* cursor);

// The state that checkpoint and ring stand for, unrounded, by the arm's own flush form.
// state_out: [batch, num_heads, head_dim, state_size] float32 on the call's device; a padded row's part becomes zero.
void reconstruct(const Device&, const Shape&, const ReplayForm&, const Block&, const Parameters&, const State&,
                 const Ring&, float* state_out);

}  // namespace replayeval::mamba2
