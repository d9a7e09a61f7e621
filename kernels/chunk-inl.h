// Eight float32 at a time, whatever the vector width, so that every sum over a row has one order on every CPU:
// lane i adds the elements i, i + 8, i + 16, … and the lanes are folded 8 → 4 → 2 → 1. Eight because every row length
// is a multiple of it: no remainder, no padding that an infinity could turn into NaN.
#if defined(REPLAYEVAL_KERNELS_CHUNK_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef REPLAYEVAL_KERNELS_CHUNK_INL_H_
#undef REPLAYEVAL_KERNELS_CHUNK_INL_H_
#else
#define REPLAYEVAL_KERNELS_CHUNK_INL_H_
#endif

#include <hwy/highway.h>

#include <cstddef>

HWY_BEFORE_NAMESPACE();
namespace replayeval {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

inline constexpr std::size_t kChunk = 8;
using ChunkTag = hn::CappedTag<float, kChunk>;
inline constexpr std::size_t kPartLanes = hn::MaxLanes(ChunkTag());
inline constexpr std::size_t kParts = kChunk / kPartLanes;

struct Chunk {
  hn::Vec<ChunkTag> part[kParts];

  static HWY_INLINE Chunk load(const float* from) {
    Chunk c;
    for (std::size_t i = 0; i < kParts; ++i) c.part[i] = hn::LoadU(ChunkTag(), from + i * kPartLanes);
    return c;
  }
  static HWY_INLINE Chunk all(float value) {
    Chunk c;
    for (auto& part : c.part) part = hn::Set(ChunkTag(), value);
    return c;
  }
  HWY_INLINE void store(float* to) const {
    for (std::size_t i = 0; i < kParts; ++i) hn::StoreU(part[i], ChunkTag(), to + i * kPartLanes);
  }
};

HWY_INLINE Chunk mul(const Chunk& a, const Chunk& b) {
  Chunk c;
  for (std::size_t i = 0; i < kParts; ++i) c.part[i] = hn::Mul(a.part[i], b.part[i]);
  return c;
}

HWY_INLINE Chunk add(const Chunk& a, const Chunk& b) {
  Chunk c;
  for (std::size_t i = 0; i < kParts; ++i) c.part[i] = hn::Add(a.part[i], b.part[i]);
  return c;
}

HWY_INLINE Chunk sub(const Chunk& a, const Chunk& b) {
  Chunk c;
  for (std::size_t i = 0; i < kParts; ++i) c.part[i] = hn::Sub(a.part[i], b.part[i]);
  return c;
}

// a * b + c, one rounding
HWY_INLINE Chunk fma(const Chunk& a, const Chunk& b, const Chunk& c) {
  Chunk r;
  for (std::size_t i = 0; i < kParts; ++i) r.part[i] = hn::MulAdd(a.part[i], b.part[i], c.part[i]);
  return r;
}

#if HWY_TARGET == HWY_SCALAR
HWY_INLINE float fold(const Chunk& c) {
  float v[kChunk];
  for (std::size_t i = 0; i < kChunk; ++i) v[i] = hn::GetLane(c.part[i]);
  for (std::size_t width = kChunk / 2; width > 0; width /= 2) {
    for (std::size_t i = 0; i < width; ++i) v[i] += v[i + width];
  }
  return v[0];
}
#else
// (A template, so that only the branch of this target's width is compiled.)
template <class Tag, std::size_t kCount>
HWY_INLINE float fold_parts(Tag, const hn::Vec<Tag> (&part)[kCount]) {
  const hn::FixedTag<float, 4> four;
  hn::Vec<hn::FixedTag<float, 4>> v;
  if constexpr (kCount == 1) {
    v = hn::Add(hn::LowerHalf(four, part[0]), hn::UpperHalf(four, part[0]));
  } else {
    static_assert(kCount == 2);
    v = hn::Add(part[0], part[1]);
  }
  v = hn::Add(v, hn::Shuffle1032(v));
  return hn::GetLane(hn::Add(v, hn::Shuffle2301(v)));
}

HWY_INLINE float fold(const Chunk& c) { return fold_parts(ChunkTag(), c.part); }
#endif

// Sum of a[i] * b[i]; n is a multiple of 8.
HWY_INLINE float dot(const float* a, const float* b, std::size_t n) {
  Chunk sum = Chunk::all(0.0F);
  for (std::size_t i = 0; i < n; i += kChunk) sum = fma(Chunk::load(a + i), Chunk::load(b + i), sum);
  return fold(sum);
}

}  // namespace HWY_NAMESPACE
}  // namespace replayeval
HWY_AFTER_NAMESPACE();

#endif  // REPLAYEVAL_KERNELS_CHUNK_INL_H_
