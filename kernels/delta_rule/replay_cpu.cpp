// The replay executor on the CPU: checkpoint and ring in float32 scratch for the whole block of tokens.
#include "kernels/delta_rule/backends.h"
#include "kernels/heads_cpu.h"
#include "kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/delta_rule/replay_cpu.cpp"
#include <hwy/foreach_target.h>
// after foreach_target.h
#include "kernels/delta_rule/window-inl.h"

#include <hwy/highway.h>

#include <algorithm>

#ifndef REPLAYEVAL_KERNELS_DELTA_RULE_REPLAY_CPU_ONCE
#define REPLAYEVAL_KERNELS_DELTA_RULE_REPLAY_CPU_ONCE
namespace replayeval::delta_rule {

struct ReplayCall {
  WindowCall window;
  const Inputs& in;
  const Parameters& parameters;
  const Output& out;
};

// Ring positions that hold tokens of this block when it ends, and which of the block's tokens is at `begin`.
struct RingTail {
  std::int64_t begin = 0, end = 0;
  std::int64_t first_token = 0;
};

inline RingTail ring_tail(std::int64_t cursor, std::int64_t tokens, std::int64_t buffer_len) {
  if (cursor + tokens < buffer_len) return {cursor, cursor + tokens, 0};
  const std::int64_t live = (cursor + tokens) % buffer_len;
  return {0, live, tokens - live};
}

}  // namespace replayeval::delta_rule
#endif

HWY_BEFORE_NAMESPACE();
namespace replayeval::delta_rule {
namespace HWY_NAMESPACE {

// y by the state route; on a flush the new state replaces the checkpoint, rounded after y is computed. `build` makes
// rows p..p+3 of S_w, and y from them, out of the checkpoint's.
template <class Build>
HWY_INLINE void step_by_state(const WindowCall& call, const Head& h, bool flush, const Window& w, StorageCounts* counts,
                              const Build& build) {
  for (std::size_t p = 0; p < h.value_dim; p += kRows) {
    float* checkpoint = w.state + p * h.key_dim;
    float* rows = flush ? checkpoint : w.rows;
    build(p, checkpoint, rows);
    if (flush) round_in_place(call.state.storage, rows, kRows * h.key_dim, counts);
  }
}

struct BuildSummed {
  const Entries& entries;
  const Update& update;
  const Window& w;
  HWY_INLINE void operator()(std::size_t p, const float* checkpoint, float* rows) const {
    decayed_rows(entries, p, checkpoint, rows);
    update_rows(update, p, entries.key_dim, rows, w.y + p);
  }
};

struct BuildSequential {
  const Head& h;
  std::size_t count;
  const Window& w;
  HWY_INLINE void operator()(std::size_t p, const float* checkpoint, float* rows) const {
    if (rows != checkpoint) std::copy_n(checkpoint, kRows * h.key_dim, rows);
    run_sequence(h, count, w.q, p, w, rows);
  }
};

// The current token is entry `count` and not yet rounded; leaves y, and in a deltas ring its d.
void step_deltas(const WindowCall& call, const Head& h, std::size_t count, bool flush, const Window& w,
                 StorageCounts* counts) {
  const std::size_t own = count - 1;
  weigh(h, count, w);
  const Update update{w.q, w.k + own * h.key_dim, w.v, w.beta[own], w.values + own * h.value_dim};
  if (!flush && call.form.route == Route::output_only) {
    step_by_output(h, count, w.values, update, w, w.y);
    return;
  }
  step_by_state(call, h, flush, w, counts, BuildSummed{entries_of(h, own, w.values, w), update, w});
}

void step_inputs(const WindowCall& call, const Head& h, std::size_t count, bool flush, const Window& w,
                 StorageCounts* counts) {
  const std::size_t own = count - 1;
  if (!flush && call.form.route == Route::output_only) {
    read_by_adjoint(h, count, w);
  } else if (call.form.flush == Flush::sequential) {
    decay_each(h, count, w);
    step_by_state(call, h, flush, w, counts, BuildSequential{h, count, w});
  } else {
    find_deltas(h, own, w);
    weigh(h, count, w);
    const Update update{w.q, w.k + own * h.key_dim, w.values + own * h.value_dim, w.beta[own], nullptr};
    step_by_state(call, h, flush, w, counts, BuildSummed{entries_of(h, own, w.deltas, w), update, w});
  }
}

void replay_token(const ReplayCall& call, const Head& h, std::int64_t token, std::size_t position, const Window& w,
                  StorageCounts* counts) {
  const ReplayForm& form = call.window.form;
  float* k = w.k + position * h.key_dim;
  float* value = w.values + position * h.value_dim;
  const bool deltas = form.ring_form == RingForm::deltas;
  load_token(h, call.in, call.parameters, token,
             {w.q, k, deltas ? w.v : value, w.log_decay + position * h.gate_dim, w.beta + position});
  const std::size_t count = position + 1;
  const bool flush = count == static_cast<std::size_t>(form.buffer_len);
  if (deltas) {
    step_deltas(call.window, h, count, flush, w, counts);
  } else {
    step_inputs(call.window, h, count, flush, w, counts);
  }
  store_y(h, call.out, token, w.y);
  const Storage as_stored{form.ring_dtype, Overflow::infinity};
  round_in_place(as_stored, value, h.value_dim, nullptr);
  round_in_place(as_stored, k, h.key_dim, nullptr);
}

// Writes nothing of the ring but a deltas ring's d, which is the head's own: other heads still read the key head's k.
// store_ring_tail() writes the rest afterwards.
void replay_head(const ReplayCall& call, std::int64_t row, std::int64_t head, float* scratch, StorageCounts* counts) {
  const WindowCall& window = call.window;
  const std::int64_t slot = replayeval::cpu::slot_of(window.block, row);
  const Head h(window.family, window.shape, slot, head);
  const std::int64_t tokens = window.block.tokens;
  const std::int64_t L = window.form.buffer_len;
  if (slot < 0) {
    for (std::int64_t t = 0; t < tokens; ++t) store_zero_y(h, call.out, row * tokens + t, scratch);
    return;
  }
  const std::int64_t cursor = window.ring.cursor[slot];
  const Window w(h, L, scratch);
  load_window(window, h, slot, cursor, w);
  for (std::int64_t t = 0; t < tokens; ++t) {
    replay_token(call, h, row * tokens + t, static_cast<std::size_t>((cursor + t) % L), w, counts);
  }
  if (cursor + tokens >= L) {
    narrow(window.state.storage, w.state, h.value_dim * h.key_dim, window.state.data, h.state_offset);
  }
  if (window.form.ring_form == RingForm::inputs) return;
  const RingTail tail = ring_tail(cursor, tokens, L);
  const std::int64_t first = (slot * window.shape.num_value_heads + head) * L + tail.begin;
  narrow({window.form.ring_dtype, Overflow::infinity}, w.values + static_cast<std::size_t>(tail.begin) * h.value_dim,
         static_cast<std::size_t>(tail.end - tail.begin) * h.value_dim, window.ring.values,
         first * window.shape.value_dim);
}

void store_ring_tail(const ReplayCall& call, std::int64_t row, std::int64_t head, float* scratch) {
  const WindowCall& window = call.window;
  const std::int64_t slot = replayeval::cpu::slot_of(window.block, row);
  if (slot < 0) return;
  const Shape& shape = window.shape;
  const std::int64_t L = window.form.buffer_len;
  const Head h(window.family, shape, slot, head);
  const Window w(h, L, scratch);
  const Storage as_stored{window.form.ring_dtype, Overflow::infinity};
  const RingTail tail = ring_tail(window.ring.cursor[slot], window.block.tokens, L);
  for (std::int64_t position = tail.begin; position < tail.end; ++position) {
    const std::int64_t token = row * window.block.tokens + tail.first_token + (position - tail.begin);
    const std::int64_t head_entry = (slot * shape.num_value_heads + head) * L + position;
    const std::int64_t key_entry = (slot * shape.num_key_heads + h.key_head) * L + position;
    load_token(h, call.in, call.parameters, token, {nullptr, w.k, w.v, w.log_decay, w.beta});
    std::copy_n(w.log_decay, h.gate_dim, window.ring.log_decay + head_entry * static_cast<std::int64_t>(h.gate_dim));
    if (h.leads_group) narrow(as_stored, w.k, h.key_dim, window.ring.k, key_entry * shape.key_dim);
    if (window.form.ring_form == RingForm::deltas) continue;
    window.ring.beta[head_entry] = *w.beta;
    narrow(as_stored, w.v, h.value_dim, window.ring.values, head_entry * shape.value_dim);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace replayeval::delta_rule
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace replayeval::delta_rule {
HWY_EXPORT(replay_head);
HWY_EXPORT(store_ring_tail);

namespace cpu {

void replay(Family family, const Shape& shape, const ReplayForm& form, const Block& block, const Inputs& in,
            const Parameters& parameters, const State& state, const Ring& ring, const Output& out) {
  const ReplayCall call{{family, shape, form, block, state, ring}, in, parameters, out};
  const std::size_t floats = window_floats(call.window);
  const auto run_head = HWY_DYNAMIC_DISPATCH(replay_head);
  replayeval::cpu::for_each_head(block.batch, shape.num_value_heads, floats, state.counts,
                                 [&](std::int64_t row, std::int64_t head, float* scratch, StorageCounts* counts) {
                                   run_head(call, row, head, scratch, counts);
                                 });
  const auto store_tail = HWY_DYNAMIC_DISPATCH(store_ring_tail);
  replayeval::cpu::for_each_head(block.batch, shape.num_value_heads, floats, nullptr,
                                 [&](std::int64_t row, std::int64_t head, float* scratch, StorageCounts*) {
                                   store_tail(call, row, head, scratch);
                                 });
}

}  // namespace cpu
}  // namespace replayeval::delta_rule
#endif  // HWY_ONCE
