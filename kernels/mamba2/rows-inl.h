// Four rows of a head's state at a time: the one place where the CPU kernels' state arithmetic is written. The exact
// executor is the case of one entry.
#if defined(REPLAYEVAL_KERNELS_MAMBA2_ROWS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef REPLAYEVAL_KERNELS_MAMBA2_ROWS_INL_H_
#undef REPLAYEVAL_KERNELS_MAMBA2_ROWS_INL_H_
#else
#define REPLAYEVAL_KERNELS_MAMBA2_ROWS_INL_H_
#endif

#include "kernels/chunk-inl.h"
#include "kernels/mamba2/mamba2.h"
#include "kernels/mamba2/scalars.h"

#include <cstddef>

HWY_BEFORE_NAMESPACE();
namespace replayeval {
namespace HWY_NAMESPACE {

inline constexpr std::size_t kRows = 4;

// The tokens between a checkpoint state and the state wanted, oldest first.
struct Entries {
  std::size_t count = 0;
  std::size_t head_dim = 0, state_size = 0;
  const float* x = nullptr;  // [count, head_dim]
  const float* B = nullptr;  // [count, state_size]
  const mamba2::Weights* weights = nullptr;
};

template <bool kSequential>
HWY_INLINE void apply_entries(const Entries& e, const float (*factor)[mamba2::kMaxBufferLen], std::size_t n,
                              Chunk (&s)[kRows]) {
  if (!kSequential) {
    const Chunk g = Chunk::all(e.weights->scale[0]);
    for (Chunk& row : s) row = mul(g, row);
  }
  for (std::size_t j = 0; j < e.count; ++j) {
    const Chunk b = Chunk::load(e.B + j * e.state_size + n);
    if (kSequential) {
      const Chunk a = Chunk::all(e.weights->scale[j]);
      for (Chunk& row : s) row = mul(a, row);
    }
    for (std::size_t r = 0; r < kRows; ++r) s[r] = fma(Chunk::all(factor[r][j]), b, s[r]);
  }
}

// S = the state after all entries, for rows p..p+3; y[r] = S[p + r, :] · C where C is not null; S goes to `out` where
// that is not null (it may be `state`). state and out: [kRows, state_size].
template <bool kSequential>
HWY_INLINE void state_rows_as(const Entries& e, std::size_t p, const float* state, const float* C, float* out,
                              float* y) {
  float factor[kRows][mamba2::kMaxBufferLen];
  for (std::size_t r = 0; r < kRows; ++r) {
    for (std::size_t j = 0; j < e.count; ++j) factor[r][j] = e.weights->weight[j] * e.x[j * e.head_dim + p + r];
  }
  Chunk sum[kRows];
  for (Chunk& row : sum) row = Chunk::all(0.0F);
  for (std::size_t n = 0; n < e.state_size; n += kChunk) {
    Chunk s[kRows];
    for (std::size_t r = 0; r < kRows; ++r) s[r] = Chunk::load(state + r * e.state_size + n);
    apply_entries<kSequential>(e, factor, n, s);
    if (out != nullptr) {
      for (std::size_t r = 0; r < kRows; ++r) s[r].store(out + r * e.state_size + n);
    }
    if (C != nullptr) {
      const Chunk c = Chunk::load(C + n);
      for (std::size_t r = 0; r < kRows; ++r) sum[r] = fma(s[r], c, sum[r]);
    }
  }
  if (C == nullptr) return;
  for (std::size_t r = 0; r < kRows; ++r) y[r] = fold(sum[r]);
}

HWY_INLINE void state_rows(mamba2::Flush flush, const Entries& e, std::size_t p, const float* state, const float* C,
                           float* out, float* y) {
  if (flush == mamba2::Flush::sequential) {
    state_rows_as<true>(e, p, state, C, out, y);
  } else {
    state_rows_as<false>(e, p, state, C, out, y);
  }
}

// y[r] = state[r, :] · C
HWY_INLINE void dot_rows(const float* state, const float* C, std::size_t state_size, float* y) {
  Chunk sum[kRows];
  for (Chunk& row : sum) row = Chunk::all(0.0F);
  for (std::size_t n = 0; n < state_size; n += kChunk) {
    const Chunk c = Chunk::load(C + n);
    for (std::size_t r = 0; r < kRows; ++r) sum[r] = fma(Chunk::load(state + r * state_size + n), c, sum[r]);
  }
  for (std::size_t r = 0; r < kRows; ++r) y[r] = fold(sum[r]);
}

}  // namespace HWY_NAMESPACE
}  // namespace replayeval
HWY_AFTER_NAMESPACE();

#endif  // REPLAYEVAL_KERNELS_MAMBA2_ROWS_INL_H_
