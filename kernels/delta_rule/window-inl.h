// A value head's checkpoint and ring in float32 scratch, holding the values that the caches would, and what can be read
// from them: y, the next d, the state (CPU).
#if defined(REPLAYEVAL_KERNELS_DELTA_RULE_WINDOW_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef REPLAYEVAL_KERNELS_DELTA_RULE_WINDOW_INL_H_
#undef REPLAYEVAL_KERNELS_DELTA_RULE_WINDOW_INL_H_
#else
#define REPLAYEVAL_KERNELS_DELTA_RULE_WINDOW_INL_H_
#endif

#include "kernels/delta_rule/head-inl.h"
#include "kernels/delta_rule/rows-inl.h"
#include "kernels/delta_rule/window_cpu.h"

#include <algorithm>
#include <cstddef>

HWY_BEFORE_NAMESPACE();
namespace replayeval::delta_rule {
namespace HWY_NAMESPACE {

struct Window {
  float* state;      // [value_dim, key_dim]
  float* values;     // [buffer_len, value_dim]: d or v
  float* k;          // [buffer_len, key_dim]
  float* log_decay;  // [buffer_len, gate_dim]
  float* beta;       // [buffer_len]
  float* q;          // [key_dim], the current token's
  float* v;          // [value_dim], the current token's
  float* y;          // [value_dim]
  // Made by weigh() for a number of entries.
  float* decay;  // [key_dim]: what all decays come to
  float* keys;   // [buffer_len, key_dim]: k_j times what the decays after it come to
  // Scratch.
  float* deltas;  // [buffer_len, value_dim]: an inputs ring's d
  float* query;   // [2, key_dim]
  float* rows;    // [kRows, key_dim]

  Window(const Head& h, std::int64_t buffer_len, float* scratch) {
    const auto L = static_cast<std::size_t>(buffer_len);
    float* next = scratch;
    const auto take = [&](std::size_t floats) {
      float* taken = next;
      next += floats;
      return taken;
    };
    state = take(h.value_dim * h.key_dim);
    values = take(L * h.value_dim);
    k = take(L * h.key_dim);
    log_decay = take(L * h.gate_dim);
    beta = take(L);
    q = take(h.key_dim);
    v = take(h.value_dim);
    y = take(h.value_dim);
    decay = take(h.key_dim);
    keys = take(L * h.key_dim);
    deltas = take(L * h.value_dim);
    query = take(2 * h.key_dim);
    rows = take(kRows * h.key_dim);
  }
};

HWY_INLINE void load_window(const WindowCall& call, const Head& h, std::int64_t slot, std::int64_t entries,
                            const Window& w) {
  const auto live = static_cast<std::size_t>(entries);
  const Ring& ring = call.ring;
  const std::int64_t head_ring = (slot * call.shape.num_value_heads + h.head) * call.form.buffer_len;
  const std::int64_t key_ring = (slot * call.shape.num_key_heads + h.key_head) * call.form.buffer_len;
  widen(call.state.storage.dtype, call.state.data, h.state_offset, h.value_dim * h.key_dim, w.state);
  widen(call.form.ring_dtype, ring.values, head_ring * call.shape.value_dim, live * h.value_dim, w.values);
  widen(call.form.ring_dtype, ring.k, key_ring * call.shape.key_dim, live * h.key_dim, w.k);
  std::copy_n(ring.log_decay + head_ring * static_cast<std::int64_t>(h.gate_dim), live * h.gate_dim, w.log_decay);
  if (call.form.ring_form == RingForm::inputs) std::copy_n(ring.beta + head_ring, live, w.beta);
}

// decay and keys for the ring's first `count` entries: keys_j = k_j exp(g_{j+1} + … + g_count), decay = exp(g_1 + … +
// g_count), each sum running from the newest down. The newest key stays itself, and no entries leave the state as it
// is.
HWY_INLINE void weigh(const Head& h, std::size_t count, const Window& w) {
  for (std::size_t c = 0; c < h.key_dim; c += kChunk) {
    Chunk after = Chunk::all(0.0F);
    for (std::size_t j = count; j-- > 0;) {
      const Chunk k = Chunk::load(w.k + j * h.key_dim + c);
      (j + 1 == count ? k : mul(exp_of(after), k)).store(w.keys + j * h.key_dim + c);
      const float* g = w.log_decay + j * h.gate_dim;
      after = add(after, h.gate_dim == 1 ? Chunk::all(g[0]) : Chunk::load(g + c));
    }
    (count == 0 ? Chunk::all(1.0F) : exp_of(after)).store(w.decay + c);
  }
}

// S_0 diag(decay) + sum_{j < count} d_j keys_j^T, after weigh(count + 1) or, to leave out no entry, weigh(count).
HWY_INLINE Entries entries_of(const Head& h, std::size_t count, const float* d, const Window& w) {
  return {count, h.key_dim, h.value_dim, d, w.keys, w.decay};
}

// y and d of a token that is entry `count` of the ring without building the state, after weigh(count): with a = S_0
// (decay ⊙ k) + sum_{j < count} (keys_j · k) d_j, d = beta (v - a); y likewise with q, plus (k · q) d.
HWY_INLINE void step_by_output(const Head& h, std::size_t count, const float* d, const Update& u, const Window& w,
                               float* y) {
  const std::size_t earlier = count - 1;
  float by_k[kMaxBufferLen];
  float by_q[kMaxBufferLen];
  float* query_k = w.query;
  float* query_q = w.query + h.key_dim;
  for (std::size_t c = 0; c < h.key_dim; c += kChunk) {
    const Chunk decay = Chunk::load(w.decay + c);
    mul(decay, Chunk::load(u.k + c)).store(query_k + c);
    if (u.q != nullptr) mul(decay, Chunk::load(u.q + c)).store(query_q + c);
  }
  for (std::size_t j = 0; j < earlier; ++j) {
    by_k[j] = dot(w.keys + j * h.key_dim, u.k, h.key_dim);
    if (u.q != nullptr) by_q[j] = dot(w.keys + j * h.key_dim, u.q, h.key_dim);
  }
  const float own = u.q == nullptr ? 0.0F : dot(u.k, u.q, h.key_dim);
  for (std::size_t p = 0; p < h.value_dim; p += kRows) {
    dot_rows(w.state + p * h.key_dim, query_k, h.key_dim, u.d + p);
    if (u.q != nullptr) dot_rows(w.state + p * h.key_dim, query_q, h.key_dim, y + p);
  }
  for (std::size_t p = 0; p < h.value_dim; p += kChunk) {
    Chunk held = Chunk::load(u.d + p);
    for (std::size_t j = 0; j < earlier; ++j) {
      held = fma(Chunk::all(by_k[j]), Chunk::load(d + j * h.value_dim + p), held);
    }
    const Chunk delta = mul(Chunk::all(u.beta), sub(Chunk::load(u.v + p), held));
    delta.store(u.d + p);
    if (u.q == nullptr) continue;
    Chunk sum = Chunk::load(y + p);
    for (std::size_t j = 0; j < earlier; ++j) {
      sum = fma(Chunk::all(by_q[j]), Chunk::load(d + j * h.value_dim + p), sum);
    }
    fma(Chunk::all(own), delta, sum).store(y + p);
  }
}

// deltas = d of an inputs ring's first `count` entries, each from those before it.
HWY_INLINE void find_deltas(const Head& h, std::size_t count, const Window& w) {
  for (std::size_t j = 0; j < count; ++j) {
    weigh(h, j + 1, w);
    const Update entry{nullptr, w.k + j * h.key_dim, w.values + j * h.value_dim, w.beta[j], w.deltas + j * h.value_dim};
    step_by_output(h, j + 1, w.deltas, entry, w, nullptr);
  }
}

// y of an inputs ring whose entry `count` is the token of q: the query is carried back through the window.
HWY_INLINE void read_by_adjoint(const Head& h, std::size_t count, const Window& w) {
  float factor[kMaxBufferLen];
  float* u = w.query;
  float* alpha = w.query + h.key_dim;
  std::copy_n(w.q, h.key_dim, u);
  for (std::size_t t = count; t-- > 0;) {
    const float* k = w.k + t * h.key_dim;
    factor[t] = w.beta[t] * dot(k, u, h.key_dim);
    decay_of(h, w.log_decay + t * h.gate_dim, alpha);
    const Chunk minus = Chunk::all(-factor[t]);
    for (std::size_t c = 0; c < h.key_dim; c += kChunk) {
      mul(Chunk::load(alpha + c), fma(minus, Chunk::load(k + c), Chunk::load(u + c))).store(u + c);
    }
  }
  for (std::size_t p = 0; p < h.value_dim; p += kRows) dot_rows(w.state + p * h.key_dim, u, h.key_dim, w.y + p);
  for (std::size_t p = 0; p < h.value_dim; p += kChunk) {
    Chunk sum = Chunk::load(w.y + p);
    for (std::size_t t = 0; t < count; ++t) {
      sum = fma(Chunk::all(factor[t]), Chunk::load(w.values + t * h.value_dim + p), sum);
    }
    sum.store(w.y + p);
  }
}

// keys = exp(g_j) of every entry, for run_sequence().
HWY_INLINE void decay_each(const Head& h, std::size_t count, const Window& w) {
  for (std::size_t j = 0; j < count; ++j) decay_of(h, w.log_decay + j * h.gate_dim, w.keys + j * h.key_dim);
}

// Rows p..p+3 after an inputs ring's first `count` entries, one after the other; q reads y from the last.
HWY_INLINE void run_sequence(const Head& h, std::size_t count, const float* q, std::size_t p, const Window& w,
                             float* rows) {
  for (std::size_t j = 0; j < count; ++j) {
    const Entries none{0, h.key_dim, h.value_dim, nullptr, nullptr, w.keys + j * h.key_dim};
    const Update entry{j + 1 == count ? q : nullptr, w.k + j * h.key_dim, w.values + j * h.value_dim, w.beta[j],
                       nullptr};
    decayed_rows(none, p, rows, rows);
    update_rows(entry, p, h.key_dim, rows, w.y + p);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace replayeval::delta_rule
HWY_AFTER_NAMESPACE();

#endif  // REPLAYEVAL_KERNELS_DELTA_RULE_WINDOW_INL_H_
