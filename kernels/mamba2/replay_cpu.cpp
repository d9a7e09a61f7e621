// The replay executor on the CPU: checkpoint and ring in float32 scratch for the whole block, holding the values that
// the caches would.
#include "kernels/heads_cpu.h"
#include "kernels/mamba2/backends.h"
#include "kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/mamba2/replay_cpu.cpp"
#include <hwy/foreach_target.h>
// after foreach_target.h
#include "kernels/mamba2/head-inl.h"
#include "kernels/mamba2/rows-inl.h"

#include <hwy/highway.h>

#include <algorithm>

#ifndef REPLAYEVAL_KERNELS_MAMBA2_REPLAY_CPU_ONCE
#define REPLAYEVAL_KERNELS_MAMBA2_REPLAY_CPU_ONCE
namespace replayeval {

struct ReplayCall {
  const mamba2::Shape& shape;
  const mamba2::ReplayForm& form;
  const mamba2::Block& block;
  const mamba2::Inputs& in;
  const mamba2::Parameters& parameters;
  const mamba2::State& state;
  const mamba2::Ring& ring;
  const mamba2::Output& out;
};

struct ReconstructCall {
  const mamba2::Shape& shape;
  const mamba2::ReplayForm& form;
  const mamba2::Block& block;
  const mamba2::Parameters& parameters;
  const mamba2::State& state;
  const mamba2::Ring& ring;
  float* state_out;
};

inline std::size_t replay_scratch_floats(const mamba2::Shape& s, const mamba2::ReplayForm& form) {
  const std::int64_t per_entry = s.head_dim + s.state_size + 1;
  return static_cast<std::size_t>(s.head_dim * s.state_size + form.buffer_len * per_entry + s.head_dim + s.state_size);
}

// Ring positions that hold tokens of this block when it ends, and where the first of them comes from.
struct RingTail {
  std::int64_t begin = 0, end = 0;  // positions
  std::int64_t first_token = 0;     // of the block, stored at `begin`
};

inline RingTail ring_tail(std::int64_t cursor, std::int64_t tokens, std::int64_t buffer_len) {
  if (cursor + tokens < buffer_len) return {cursor, cursor + tokens, 0};
  const std::int64_t live = (cursor + tokens) % buffer_len;
  return {0, live, tokens - live};
}

}  // namespace replayeval
#endif

HWY_BEFORE_NAMESPACE();
namespace replayeval {
namespace HWY_NAMESPACE {

// A head's checkpoint and ring, widened.
struct LocalRing {
  float* state;  // [head_dim, state_size]
  float* x;      // [buffer_len, head_dim]
  float* B;      // [buffer_len, state_size]
  float* dt;     // [buffer_len]
  float* y;      // [head_dim]
  float* C;      // [state_size]

  LocalRing(const Head& h, std::int64_t buffer_len, float* scratch) {
    const auto L = static_cast<std::size_t>(buffer_len);
    state = scratch;
    x = state + h.head_dim * h.state_size;
    B = x + L * h.head_dim;
    dt = B + L * h.state_size;
    y = dt + L;
    C = y + h.head_dim;
  }
};

void load_ring(const mamba2::Shape& shape, const mamba2::ReplayForm& form, const mamba2::State& state,
               const mamba2::Ring& ring, const Head& h, std::int64_t slot, std::int64_t entries, LocalRing& local) {
  const auto live = static_cast<std::size_t>(entries);
  const std::int64_t head_ring = (slot * shape.num_heads + h.head) * form.buffer_len;
  const std::int64_t group_ring = (slot * shape.num_groups + h.group) * form.buffer_len;
  widen(state.storage.dtype, state.data, h.state_offset, h.head_dim * h.state_size, local.state);
  widen(form.ring_dtype, ring.x, head_ring * shape.head_dim, live * h.head_dim, local.x);
  widen(form.ring_dtype, ring.B, group_ring * shape.state_size, live * h.state_size, local.B);
  std::copy_n(ring.dt + head_ring, live, local.dt);
}

// y by the state route; on a flush the new state replaces the checkpoint, rounded after y is computed.
void step_by_state(const ReplayCall& call, const Entries& entries, bool flush, LocalRing& local,
                   StorageCounts* counts) {
  for (std::size_t p = 0; p < entries.head_dim; p += kRows) {
    float* rows = local.state + p * entries.state_size;
    state_rows(call.form.flush, entries, p, rows, local.C, flush ? rows : nullptr, local.y + p);
    if (flush) round_in_place(call.state.storage, rows, kRows * entries.state_size, counts);
  }
}

// y = g (S_0 C) + sum_j s_j (B_j · C) x_j, without building the state.
void step_by_output(const Entries& entries, const mamba2::Weights& weights, LocalRing& local) {
  float factor[mamba2::kMaxBufferLen];
  for (std::size_t j = 0; j < entries.count; ++j) {
    factor[j] = weights.weight[j] * dot(entries.B + j * entries.state_size, local.C, entries.state_size);
  }
  for (std::size_t p = 0; p < entries.head_dim; p += kRows) {
    dot_rows(local.state + p * entries.state_size, local.C, entries.state_size, local.y + p);
  }
  const Chunk g = Chunk::all(weights.scale[0]);
  for (std::size_t p = 0; p < entries.head_dim; p += kChunk) {
    Chunk y = mul(g, Chunk::load(local.y + p));
    for (std::size_t j = 0; j < entries.count; ++j) {
      y = fma(Chunk::all(factor[j]), Chunk::load(entries.x + j * entries.head_dim + p), y);
    }
    y.store(local.y + p);
  }
}

void replay_token(const ReplayCall& call, const Head& h, std::int64_t token, std::size_t position, LocalRing& local,
                  StorageCounts* counts) {
  const std::size_t count = position + 1;
  float* x = local.x + position * h.head_dim;
  float* B = local.B + position * h.state_size;
  local.dt[position] = load_token(h, call.in, token, x, B, local.C);

  const bool flush = count == static_cast<std::size_t>(call.form.buffer_len);
  const bool by_state = flush || call.form.route == mamba2::Route::state_and_output;
  mamba2::Weights weights;
  if (by_state && call.form.flush == mamba2::Flush::sequential) {
    mamba2::sequential_weights(h.rate, local.dt, count, weights);
  } else {
    mamba2::summed_weights(h.rate, local.dt, count, weights);
  }
  const Entries entries{count, h.head_dim, h.state_size, local.x, local.B, &weights};
  if (by_state) {
    step_by_state(call, entries, flush, local, counts);
  } else {
    step_by_output(entries, weights, local);
  }
  store_y(h, call.out, token, x, local.y);
  const Storage as_stored{call.form.ring_dtype, Overflow::infinity};
  round_in_place(as_stored, x, h.head_dim, nullptr);
  round_in_place(as_stored, B, h.state_size, nullptr);
}

// Leaves the ring's memory alone: other heads still read the group's B. store_ring_tail() writes it afterwards.
void replay_head(const ReplayCall& call, std::int64_t row, std::int64_t head, float* scratch, StorageCounts* counts) {
  const std::int64_t slot = cpu::slot_of(call.block, row);
  const Head h(call.shape, call.parameters, slot, head);
  const std::int64_t first = row * call.block.tokens;
  if (slot < 0) {
    for (std::int64_t t = 0; t < call.block.tokens; ++t) store_zero_y(h, call.out, first + t, scratch);
    return;
  }
  const std::int64_t cursor = call.ring.cursor[slot];
  LocalRing local(h, call.form.buffer_len, scratch);
  load_ring(call.shape, call.form, call.state, call.ring, h, slot, cursor, local);
  for (std::int64_t t = 0; t < call.block.tokens; ++t) {
    const auto position = static_cast<std::size_t>((cursor + t) % call.form.buffer_len);
    replay_token(call, h, first + t, position, local, counts);
  }
  if (cursor + call.block.tokens >= call.form.buffer_len) {
    narrow(call.state.storage, local.state, h.head_dim * h.state_size, call.state.data, h.state_offset);
  }
}

void store_ring_tail(const ReplayCall& call, std::int64_t row, std::int64_t head, float* scratch) {
  const std::int64_t slot = cpu::slot_of(call.block, row);
  if (slot < 0) return;
  const mamba2::Shape& shape = call.shape;
  const Head h(shape, call.parameters, slot, head);
  const Storage as_stored{call.form.ring_dtype, Overflow::infinity};
  const RingTail tail = ring_tail(call.ring.cursor[slot], call.block.tokens, call.form.buffer_len);
  const bool leads_group = head % (shape.num_heads / shape.num_groups) == 0;
  LocalRing local(h, call.form.buffer_len, scratch);
  for (std::int64_t position = tail.begin; position < tail.end; ++position) {
    const std::int64_t token = row * call.block.tokens + tail.first_token + (position - tail.begin);
    const std::int64_t head_entry = (slot * shape.num_heads + head) * call.form.buffer_len + position;
    const std::int64_t group_entry = (slot * shape.num_groups + h.group) * call.form.buffer_len + position;
    call.ring.dt[head_entry] = load_token(h, call.in, token, local.x, local.B, local.C);
    narrow(as_stored, local.x, h.head_dim, call.ring.x, head_entry * shape.head_dim);
    if (leads_group) narrow(as_stored, local.B, h.state_size, call.ring.B, group_entry * shape.state_size);
  }
}

void reconstruct_head(const ReconstructCall& call, std::int64_t row, std::int64_t head, float* scratch) {
  const std::int64_t slot = cpu::slot_of(call.block, row);
  const Head h(call.shape, call.parameters, slot, head);
  const std::size_t state_elements = h.head_dim * h.state_size;
  float* out = call.state_out + static_cast<std::size_t>(row * call.shape.num_heads + head) * state_elements;
  if (slot < 0) {
    std::fill_n(out, state_elements, 0.0F);
    return;
  }
  const std::int64_t cursor = call.ring.cursor[slot];
  LocalRing local(h, call.form.buffer_len, scratch);
  load_ring(call.shape, call.form, call.state, call.ring, h, slot, cursor, local);
  mamba2::Weights weights;
  if (call.form.flush == mamba2::Flush::sequential) {
    mamba2::sequential_weights(h.rate, local.dt, static_cast<std::size_t>(cursor), weights);
  } else {
    mamba2::summed_weights(h.rate, local.dt, static_cast<std::size_t>(cursor), weights);
  }
  const Entries entries{static_cast<std::size_t>(cursor), h.head_dim, h.state_size, local.x, local.B, &weights};
  for (std::size_t p = 0; p < h.head_dim; p += kRows) {
    state_rows(call.form.flush, entries, p, local.state + p * h.state_size, nullptr, out + p * h.state_size, nullptr);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace replayeval
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace replayeval {
HWY_EXPORT(replay_head);
HWY_EXPORT(store_ring_tail);
HWY_EXPORT(reconstruct_head);

namespace mamba2::cpu {

void replay(const Shape& shape, const ReplayForm& form, const Block& block, const Inputs& in,
            const Parameters& parameters, const State& state, const Ring& ring, const Output& out) {
  const ReplayCall call{shape, form, block, in, parameters, state, ring, out};
  const std::size_t floats = replay_scratch_floats(shape, form);
  const auto run_head = HWY_DYNAMIC_DISPATCH(replay_head);
  replayeval::cpu::for_each_head(block.batch, shape.num_heads, floats, state.counts,
                                 [&](std::int64_t row, std::int64_t head, float* scratch, StorageCounts* counts) {
                                   run_head(call, row, head, scratch, counts);
                                 });
  const auto store_tail = HWY_DYNAMIC_DISPATCH(store_ring_tail);
  replayeval::cpu::for_each_head(block.batch, shape.num_heads, floats, nullptr,
                                 [&](std::int64_t row, std::int64_t head, float* scratch, StorageCounts*) {
                                   store_tail(call, row, head, scratch);
                                 });
}

void reconstruct(const Shape& shape, const ReplayForm& form, const Block& block, const Parameters& parameters,
                 const State& state, const Ring& ring, float* state_out) {
  const ReconstructCall call{shape, form, block, parameters, state, ring, state_out};
  const auto run_head = HWY_DYNAMIC_DISPATCH(reconstruct_head);
  replayeval::cpu::for_each_head(
      block.batch, shape.num_heads, replay_scratch_floats(shape, form), nullptr,
      [&](std::int64_t row, std::int64_t head, float* scratch, StorageCounts*) { run_head(call, row, head, scratch); });
}

}  // namespace mamba2::cpu
}  // namespace replayeval
#endif  // HWY_ONCE
