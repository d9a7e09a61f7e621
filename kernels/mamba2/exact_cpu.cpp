// The exact executor on the CPU: the state in float32 scratch for the whole block, rounded after every token.
#include "kernels/heads_cpu.h"
#include "kernels/mamba2/backends.h"
#include "kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/mamba2/exact_cpu.cpp"
#include <hwy/foreach_target.h>
// after foreach_target.h
#include "kernels/mamba2/head-inl.h"
#include "kernels/mamba2/rows-inl.h"

#include <hwy/highway.h>

#include <algorithm>

#ifndef REPLAYEVAL_KERNELS_MAMBA2_EXACT_CPU_ONCE
#define REPLAYEVAL_KERNELS_MAMBA2_EXACT_CPU_ONCE
namespace replayeval {

struct ExactCall {
  const mamba2::Shape& shape;
  const mamba2::Block& block;
  const mamba2::Inputs& in;
  const mamba2::Parameters& parameters;
  const mamba2::State& state;
  const mamba2::Output& out;
};

// Tokens that are widened to float32 at once, so that four state rows stay in L1 while they run through them.
inline constexpr std::int64_t kTokenTile = 16;

inline std::size_t exact_scratch_floats(const mamba2::Shape& s) {
  return static_cast<std::size_t>(s.head_dim * s.state_size + kTokenTile * 2 * (s.head_dim + s.state_size));
}

}  // namespace replayeval
#endif

HWY_BEFORE_NAMESPACE();
namespace replayeval {
namespace HWY_NAMESPACE {

struct TokenTile {
  float* x;  // [kTokenTile, head_dim]
  float* y;  // [kTokenTile, head_dim]
  float* B;  // [kTokenTile, state_size]
  float* C;  // [kTokenTile, state_size]
  mamba2::Weights weights[kTokenTile];
};

void exact_rows(const ExactCall& call, const Head& h, const TokenTile& tile, std::int64_t tokens, std::size_t p,
                float* rows, StorageCounts* counts) {
  for (std::int64_t i = 0; i < tokens; ++i) {
    const auto t = static_cast<std::size_t>(i);
    const Entries token{
        1, h.head_dim, h.state_size, tile.x + t * h.head_dim, tile.B + t * h.state_size, &tile.weights[t]};
    state_rows_as<true>(token, p, rows, tile.C + t * h.state_size, rows, tile.y + t * h.head_dim + p);
    round_in_place(call.state.storage, rows, kRows * h.state_size, counts);
  }
}

void exact_head(const ExactCall& call, std::int64_t row, std::int64_t head, float* scratch, StorageCounts* counts) {
  const std::int64_t slot = cpu::slot_of(call.block, row);
  const Head h(call.shape, call.parameters, slot, head);
  const std::int64_t first = row * call.block.tokens;
  if (slot < 0) {
    for (std::int64_t t = 0; t < call.block.tokens; ++t) store_zero_y(h, call.out, first + t, scratch);
    return;
  }
  const std::size_t state_elements = h.head_dim * h.state_size;
  float* state = scratch;
  TokenTile tile;
  tile.x = state + state_elements;
  tile.y = tile.x + kTokenTile * h.head_dim;
  tile.B = tile.y + kTokenTile * h.head_dim;
  tile.C = tile.B + kTokenTile * h.state_size;

  widen(call.state.storage.dtype, call.state.data, h.state_offset, state_elements, state);
  for (std::int64_t start = 0; start < call.block.tokens; start += kTokenTile) {
    const std::int64_t tokens = std::min(kTokenTile, call.block.tokens - start);
    for (std::int64_t t = 0; t < tokens; ++t) {
      const float dt = load_token(h, call.in, first + start + t, tile.x + t * call.shape.head_dim,
                                  tile.B + t * call.shape.state_size, tile.C + t * call.shape.state_size);
      mamba2::sequential_weights(h.rate, &dt, 1, tile.weights[t]);
    }
    for (std::size_t p = 0; p < h.head_dim; p += kRows) {
      exact_rows(call, h, tile, tokens, p, state + p * h.state_size, counts);
    }
    for (std::int64_t t = 0; t < tokens; ++t) {
      store_y(h, call.out, first + start + t, tile.x + t * call.shape.head_dim, tile.y + t * call.shape.head_dim);
    }
  }
  narrow(call.state.storage, state, state_elements, call.state.data, h.state_offset);
}

}  // namespace HWY_NAMESPACE
}  // namespace replayeval
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace replayeval {
HWY_EXPORT(exact_head);

namespace mamba2::cpu {

void exact(const Shape& shape, const Block& block, const Inputs& in, const Parameters& parameters, const State& state,
           const Output& out) {
  const ExactCall call{shape, block, in, parameters, state, out};
  const auto run_head = HWY_DYNAMIC_DISPATCH(exact_head);
  replayeval::cpu::for_each_head(block.batch, shape.num_heads, exact_scratch_floats(shape), state.counts,
                                 [&](std::int64_t row, std::int64_t head, float* scratch, StorageCounts* counts) {
                                   run_head(call, row, head, scratch, counts);
                                 });
}

}  // namespace mamba2::cpu
}  // namespace replayeval
#endif  // HWY_ONCE
