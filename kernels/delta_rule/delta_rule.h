// The gated delta rule's decode recurrence, exact and replay, which Gated DeltaNet and Kimi Delta Attention share
// (design: "The recurrences"; Yang et al. 2024, "Gated Delta Networks", eq. 10; Kimi Linear 2025, eq. 1). The families'
// own headers, gated_delta/gated_delta.h and kda/kda.h, are what a caller needs who wants one of them.
//
//   beta_t = sigmoid(b_t), doubled with allow_neg_eigval;  alpha_t = exp(g_t), g_t by the gate from f_t
//   k_t = k / sqrt(|k|^2 + 1e-6);  q_t = q / sqrt(|q|^2 + 1e-6) * key_dim^-1/2
//   S <- S_{t-1} diag(alpha_t);  d_t = beta_t (v_t - S k_t);  S_t = S + d_t k_t^T;  y_t = S_t q_t
//                                                                            S: [value_dim, key_dim]
//
// One arithmetic, two modes: tokens == 1 is `stepwise`; tokens > 1 is `teacher_forced`, which keeps the state on
// chip and rounds it exactly where a chain of stepwise calls would store it. On one device both give the same bits,
// however a block of tokens is cut into calls, whatever the batch, the row order or the slot map.
//
// All functions are asynchronous on device.stream for CUDA. Arguments are checked at the door: a bad one throws
// std::invalid_argument with a message that says what was given and what is allowed. A CUDA failure throws
// std::runtime_error.
//
// The state, the ring's values and k and state_out are aligned to 16 bytes; inputs and y need no more than their
// element. Slot numbers and cursors that lie in GPU memory cannot be checked at the door: there, one out of range makes
// its row's y NaN and touches no cache.
#pragma once

#include "kernels/decode.h"

namespace replayeval::delta_rule {

using Block = replayeval::DecodeBlock;
using replayeval::Flush;
using replayeval::Output;  // y: [batch * tokens, num_value_heads, value_dim]
using replayeval::RingForm;
using replayeval::Route;
using replayeval::State;  // data: [slots, num_value_heads, value_dim, key_dim]

// gated_delta: one decay a value head. kda: a decay for each of its key channels.
enum class Family : std::uint8_t { gated_delta, kda };

// Allowed: key_dim and value_dim multiples of 8 up to 256, num_value_heads a multiple of num_key_heads; value head h
// reads key head h / (num_value_heads / num_key_heads). 128 x 128 is tuned.
struct Shape {
  std::int64_t num_key_heads = 0;
  std::int64_t num_value_heads = 0;
  std::int64_t key_dim = 0;
  std::int64_t value_dim = 0;
};

inline constexpr float kNormEps = 1e-6F;  // added to the sum of squares, inside the root

// Decays of a value head: what "gate_dim" stands for below.
constexpr std::int64_t gate_dim(Family family, const Shape& shape) { return family == Family::kda ? shape.key_dim : 1; }

struct ReplayForm {
  std::int64_t buffer_len = 16;  // 1..64
  // What the ring keeps of a token. deltas: d and k, with which S_w is a weighted sum. inputs: v, k and beta, from
  // which y is read by carrying the query back through the window: u_w = q_w; c_t = k_t · u_t; u_{t-1} = alpha_t (u_t -
  // beta_t c_t k_t); y_w = S_0 u_0 + sum_t beta_t c_t v_t. Either keeps g too.
  RingForm ring_form = RingForm::deltas;
  Route route = Route::output_only;  // how y is computed between flushes; a flush takes the state route
  // How S_w is built wherever the state route is used. summed: S_0 and each d_j k_j^T times what all decays after them
  // come to; an inputs ring finds its d_j by forward substitution. sequential: the recurrence above re-run over the
  // ring, so only with an inputs ring.
  Flush flush = Flush::summed;
  Dtype ring_dtype = Dtype::float32;  // of values and k in the ring: float32 or bfloat16; g and beta are float32 always
};

// Rounding points before the recurrence, which implementations place differently: float32 keeps the value, compute
// rounds it once to the inputs' dtype.
enum class Precision : std::uint8_t { float32, compute };

struct Numerics {
  Precision beta = Precision::float32;       // the sigmoid, before it is doubled
  Precision log_decay = Precision::float32;  // g
  Precision qk_norm = Precision::float32;    // normalised q and k; q before it is scaled
};

// softplus: g = -exp(A_log) softplus(f + dt_bias). bounded (kda only): g = lower_bound sigmoid(exp(A_log) (f +
// dt_bias)).
enum class Gate : std::uint8_t { softplus, bounded };

// Row r = b * tokens + t starts at pointer + r * stride (in elements); inside a row the layout is dense.
struct Inputs {
  const void* q = nullptr;  // [batch * tokens, num_key_heads, key_dim]
  const void* k = nullptr;  // [batch * tokens, num_key_heads, key_dim]
  const void* v = nullptr;  // [batch * tokens, num_value_heads, value_dim]
  const void* b = nullptr;  // [batch * tokens, num_value_heads], before the sigmoid
  const void* f = nullptr;  // [batch * tokens, num_value_heads, gate_dim], before the gate
  std::int64_t q_stride = 0, k_stride = 0, v_stride = 0, b_stride = 0, f_stride = 0;
  Dtype dtype = Dtype::float32;  // of all five
};

struct Parameters {
  const float* A_log = nullptr;    // [num_value_heads]
  const float* dt_bias = nullptr;  // [num_value_heads, gate_dim]
  bool allow_neg_eigval = false;
  Numerics numerics;
  Gate gate = Gate::softplus;
  float lower_bound = -5.0F;  // of the bounded gate; negative
};

// The last tokens of each slot. `cursor` is the number of tokens since the last flush (0..buffer_len-1); it belongs to
// the sequence, not to a layer, so it is read here and moved once per model step by advance_cursors(). What is rounded
// to ring_dtype enters unrounded at its own step.
struct Ring {
  void* values = nullptr;                // [slots, num_value_heads, buffer_len, value_dim], ring_dtype: d or v
  void* k = nullptr;                     // [slots, num_key_heads, buffer_len, key_dim], ring_dtype, normalised
  float* log_decay = nullptr;            // [slots, num_value_heads, buffer_len, gate_dim]: g
  float* beta = nullptr;                 // [slots, num_value_heads, buffer_len]; inputs form only
  const std::int32_t* cursor = nullptr;  // [slots]
};

// Reads and writes the whole state at every token.
void exact(const Device&, Family, const Shape&, const Block&, const Inputs&, const Parameters&, const State&,
           const Output&);

// Appends each token to the ring; writes the state only when the ring is full. The current token enters unrounded.
void replay(const Device&, Family, const Shape&, const ReplayForm&, const Block&, const Inputs&, const Parameters&,
            const State&, const Ring&, const Output&);

// cursor[slot] = (cursor[slot] + tokens) % buffer_len for the block's rows.
void advance_cursors(const Device&, Family, const Block&, std::int64_t buffer_len, std::int32_t* cursor);

// The state that checkpoint and ring stand for, unrounded, by the arm's own flush form.
// state_out: [batch, num_value_heads, value_dim, key_dim] float32 on the call's device; a padded row's part becomes
// zero.
void reconstruct(const Device&, Family, const Shape&, const ReplayForm&, const Block&, const State&, const Ring&,
                 float* state_out);

}  // namespace replayeval::delta_rule
