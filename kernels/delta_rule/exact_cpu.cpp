// The exact executor on the CPU: the state in float32 scratch for the whole block, rounded after every token.
#include "kernels/delta_rule/backends.h"
#include "kernels/heads_cpu.h"
#include "kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/delta_rule/exact_cpu.cpp"
#include <hwy/foreach_target.h>
// after foreach_target.h
#include "kernels/delta_rule/head-inl.h"
#include "kernels/delta_rule/rows-inl.h"

#include <hwy/highway.h>

#include <algorithm>

#ifndef REPLAYEVAL_KERNELS_DELTA_RULE_EXACT_CPU_ONCE
#define REPLAYEVAL_KERNELS_DELTA_RULE_EXACT_CPU_ONCE
namespace replayeval::delta_rule {

struct ExactCall {
  Family family;
  const Shape& shape;
  const Block& block;
  const Inputs& in;
  const Parameters& parameters;
  const State& state;
  const Output& out;
};

// Tokens that are made ready at once, so that four state rows stay in L1 while they run through them.
inline constexpr std::int64_t kTokenTile = 16;

inline std::size_t exact_scratch_floats(const Shape& s) {
  return static_cast<std::size_t>(s.value_dim * s.key_dim + kTokenTile * (3 * s.key_dim + 2 * s.value_dim + 1) +
                                  s.key_dim);
}

}  // namespace replayeval::delta_rule
#endif

HWY_BEFORE_NAMESPACE();
namespace replayeval::delta_rule {
namespace HWY_NAMESPACE {

struct TokenTile {
  float* q;          // [kTokenTile, key_dim]
  float* k;          // [kTokenTile, key_dim]
  float* decay;      // [kTokenTile, key_dim]
  float* v;          // [kTokenTile, value_dim]
  float* y;          // [kTokenTile, value_dim]
  float* beta;       // [kTokenTile]
  float* log_decay;  // [gate_dim], of one token

  TokenTile(const Head& h, float* scratch) {
    const auto tokens = static_cast<std::size_t>(kTokenTile);
    q = scratch;
    k = q + tokens * h.key_dim;
    decay = k + tokens * h.key_dim;
    v = decay + tokens * h.key_dim;
    y = v + tokens * h.value_dim;
    beta = y + tokens * h.value_dim;
    log_decay = beta + tokens;
  }
};

void load_tile(const ExactCall& call, const Head& h, std::int64_t first, std::int64_t tokens, const TokenTile& tile) {
  for (std::int64_t i = 0; i < tokens; ++i) {
    const auto t = static_cast<std::size_t>(i);
    const Token token{tile.q + t * h.key_dim, tile.k + t * h.key_dim, tile.v + t * h.value_dim, tile.log_decay,
                      tile.beta + t};
    load_token(h, call.in, call.parameters, first + i, token);
    decay_of(h, tile.log_decay, tile.decay + t * h.key_dim);
  }
}

void exact_rows(const ExactCall& call, const Head& h, const TokenTile& tile, std::int64_t tokens, std::size_t p,
                float* rows, StorageCounts* counts) {
  for (std::size_t t = 0; t < static_cast<std::size_t>(tokens); ++t) {
    const Entries none{0, h.key_dim, h.value_dim, nullptr, nullptr, tile.decay + t * h.key_dim};
    const Update update{tile.q + t * h.key_dim, tile.k + t * h.key_dim, tile.v + t * h.value_dim, tile.beta[t],
                        nullptr};
    decayed_rows(none, p, rows, rows);
    update_rows(update, p, h.key_dim, rows, tile.y + t * h.value_dim + p);
    round_in_place(call.state.storage, rows, kRows * h.key_dim, counts);
  }
}

void exact_head(const ExactCall& call, std::int64_t row, std::int64_t head, float* scratch, StorageCounts* counts) {
  const std::int64_t slot = replayeval::cpu::slot_of(call.block, row);
  const Head h(call.family, call.shape, slot, head);
  const std::int64_t first = row * call.block.tokens;
  if (slot < 0) {
    for (std::int64_t t = 0; t < call.block.tokens; ++t) store_zero_y(h, call.out, first + t, scratch);
    return;
  }
  const std::size_t state_elements = h.value_dim * h.key_dim;
  float* state = scratch;
  const TokenTile tile(h, state + state_elements);
  widen(call.state.storage.dtype, call.state.data, h.state_offset, state_elements, state);
  for (std::int64_t start = 0; start < call.block.tokens; start += kTokenTile) {
    const std::int64_t tokens = std::min(kTokenTile, call.block.tokens - start);
    load_tile(call, h, first + start, tokens, tile);
    for (std::size_t p = 0; p < h.value_dim; p += kRows) {
      exact_rows(call, h, tile, tokens, p, state + p * h.key_dim, counts);
    }
    for (std::int64_t t = 0; t < tokens; ++t) {
      store_y(h, call.out, first + start + t, tile.y + static_cast<std::size_t>(t) * h.value_dim);
    }
  }
  narrow(call.state.storage, state, state_elements, call.state.data, h.state_offset);
}

}  // namespace HWY_NAMESPACE
}  // namespace replayeval::delta_rule
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace replayeval::delta_rule {
HWY_EXPORT(exact_head);

namespace cpu {

void exact(Family family, const Shape& shape, const Block& block, const Inputs& in, const Parameters& parameters,
           const State& state, const Output& out) {
  const ExactCall call{family, shape, block, in, parameters, state, out};
  const auto run_head = HWY_DYNAMIC_DISPATCH(exact_head);
  replayeval::cpu::for_each_head(block.batch, shape.num_value_heads, exact_scratch_floats(shape), state.counts,
                                 [&](std::int64_t row, std::int64_t head, float* scratch, StorageCounts* counts) {
                                   run_head(call, row, head, scratch, counts);
                                 });
}

}  // namespace cpu
}  // namespace replayeval::delta_rule
#endif  // HWY_ONCE
