// Four rows of a head's state at a time: the one place where the CPU kernels' state arithmetic is written.
#if defined(REPLAYEVAL_KERNELS_DELTA_RULE_ROWS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef REPLAYEVAL_KERNELS_DELTA_RULE_ROWS_INL_H_
#undef REPLAYEVAL_KERNELS_DELTA_RULE_ROWS_INL_H_
#else
#define REPLAYEVAL_KERNELS_DELTA_RULE_ROWS_INL_H_
#endif

#include "kernels/chunk-inl.h"
#include "kernels/decode.h"

#include <cstddef>

HWY_BEFORE_NAMESPACE();
namespace replayeval::delta_rule {
namespace HWY_NAMESPACE {

using namespace ::replayeval::HWY_NAMESPACE;

inline constexpr std::size_t kRows = 4;

// The tokens between a checkpoint state and the state wanted, oldest first, as weighted outer products.
struct Entries {
  std::size_t count = 0;
  std::size_t key_dim = 0, value_dim = 0;
  const float* d = nullptr;      // [count, value_dim]
  const float* keys = nullptr;   // [count, key_dim]: k_j times what all decays after it come to
  const float* decay = nullptr;  // [key_dim]: what all decays come to
};

// A token that enters the state.
struct Update {
  const float* q = nullptr;  // [key_dim]; null where y is not wanted
  const float* k = nullptr;  // [key_dim]
  const float* v = nullptr;  // [value_dim]
  float beta = 0.0F;
  float* d = nullptr;  // [value_dim]; where d is left, unless null
};

// to = rows diag(decay) + sum_j d_j keys_j^T for rows p..p+3 of the state. rows and to: [kRows, key_dim]; may be the
// same.
HWY_INLINE void decayed_rows(const Entries& e, std::size_t p, const float* rows, float* to) {
  for (std::size_t c = 0; c < e.key_dim; c += kChunk) {
    const Chunk decay = Chunk::load(e.decay + c);
    Chunk s[kRows];
    for (std::size_t r = 0; r < kRows; ++r) s[r] = mul(decay, Chunk::load(rows + r * e.key_dim + c));
    for (std::size_t j = 0; j < e.count; ++j) {
      const Chunk key = Chunk::load(e.keys + j * e.key_dim + c);
      const float* d = e.d + j * e.value_dim + p;
      for (std::size_t r = 0; r < kRows; ++r) s[r] = fma(Chunk::all(d[r]), key, s[r]);
    }
    for (std::size_t r = 0; r < kRows; ++r) s[r].store(to + r * e.key_dim + c);
  }
}

// y[r] = rows[r, :] · x
HWY_INLINE void dot_rows(const float* rows, const float* x, std::size_t key_dim, float* y) {
  Chunk sum[kRows];
  for (Chunk& row : sum) row = Chunk::all(0.0F);
  for (std::size_t c = 0; c < key_dim; c += kChunk) {
    const Chunk at = Chunk::load(x + c);
    for (std::size_t r = 0; r < kRows; ++r) sum[r] = fma(Chunk::load(rows + r * key_dim + c), at, sum[r]);
  }
  for (std::size_t r = 0; r < kRows; ++r) y[r] = fold(sum[r]);
}

// With rows p..p+3 of the state decayed: d = beta (v - rows k); rows += d k^T; y[r] = rows[r, :] · q.
HWY_INLINE void update_rows(const Update& u, std::size_t p, std::size_t key_dim, float* rows, float* y) {
  float held[kRows];
  dot_rows(rows, u.k, key_dim, held);
  Chunk d[kRows];
  for (std::size_t r = 0; r < kRows; ++r) {
    const float delta = u.beta * (u.v[p + r] - held[r]);
    if (u.d != nullptr) u.d[p + r] = delta;
    d[r] = Chunk::all(delta);
  }
  for (std::size_t c = 0; c < key_dim; c += kChunk) {
    const Chunk k = Chunk::load(u.k + c);
    for (std::size_t r = 0; r < kRows; ++r) {
      float* at = rows + r * key_dim + c;
      fma(d[r], k, Chunk::load(at)).store(at);
    }
  }
  if (u.q != nullptr) dot_rows(rows, u.q, key_dim, y);
}

}  // namespace HWY_NAMESPACE
}  // namespace replayeval::delta_rule
HWY_AFTER_NAMESPACE();

#endif  // REPLAYEVAL_KERNELS_DELTA_RULE_ROWS_INL_H_
