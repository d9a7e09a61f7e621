// Consecutive elements of a row in registers, as stored, moved 16 bytes at a time.
#pragma once

#include "kernels/storage_cuda.cuh"

namespace replayeval::cuda {

// kCount elements of a whole number of 16-byte vectors.
template <Dtype kDtype, int kCount>
struct Elements {
  static constexpr int kPerWord = kDtype == Dtype::float32 ? 1 : 2;
  static constexpr int kVectors = kCount / kPerWord / 4;
  static_assert(kVectors * kPerWord * 4 == kCount);
  using Element = std::conditional_t<kDtype == Dtype::float32, float, std::uint16_t>;

  uint4 vectors[kVectors];

  // `data` + `index` elements is aligned to 16 bytes.
  __device__ __forceinline__ void load(const void* data, std::int64_t index) {
    const auto* from = reinterpret_cast<const uint4*>(static_cast<const Element*>(data) + index);
#pragma unroll
    for (int v = 0; v < kVectors; ++v) vectors[v] = from[v];
  }
  __device__ __forceinline__ void store(void* data, std::int64_t index) const {
    auto* to = reinterpret_cast<uint4*>(static_cast<Element*>(data) + index);
#pragma unroll
    for (int v = 0; v < kVectors; ++v) to[v] = vectors[v];
  }

  // The i-th alone, i known at compile time: its bits, in the low half for the 16-bit types, and its value.
  __device__ __forceinline__ std::uint32_t bits(int i) const {
    const std::uint32_t whole = word(i / kPerWord);
    if constexpr (kPerWord == 1) return whole;
    return i % 2 == 0 ? whole & 0xFFFFU : whole >> 16;
  }
  __device__ __forceinline__ float value(int i) const { return decode<kDtype>(bits(i)); }
  __device__ __forceinline__ void set_bits(int i, std::uint32_t to) {
    std::uint32_t& whole = word(i / kPerWord);
    if constexpr (kPerWord == 1) {
      whole = to;
    } else {
      whole = i % 2 == 0 ? (whole & 0xFFFF0000U) | to : (whole & 0xFFFFU) | to << 16;
    }
  }
  __device__ __forceinline__ void pack(const float (&from)[kCount]) {
#pragma unroll
    for (int w = 0; w < kCount / kPerWord; ++w) {
      if constexpr (kPerWord == 1) {
        word(w) = __float_as_uint(from[w]);
      } else {
        word(w) = encode_pair<kDtype>(from[2 * w], from[2 * w + 1]);
      }
    }
  }
  __device__ __forceinline__ void fill(float with) {
#pragma unroll
    for (int i = 0; i < kCount; ++i) set_bits(i, encode<kDtype>(with, false));
  }

 private:
  __device__ __forceinline__ std::uint32_t& word(int w) {
    uint4& vector = vectors[w / 4];
    return w % 4 == 0 ? vector.x : w % 4 == 1 ? vector.y : w % 4 == 2 ? vector.z : vector.w;
  }
  __device__ __forceinline__ std::uint32_t word(int w) const {
    const uint4& vector = vectors[w / 4];
    return w % 4 == 0 ? vector.x : w % 4 == 1 ? vector.y : w % 4 == 2 ? vector.z : vector.w;
  }
};

// Whether row r of a tensor, at data + r * stride elements, begins on a 16-byte boundary for every r.
inline bool rows_aligned(const void* data, std::int64_t stride, Dtype dtype) {
  return reinterpret_cast<std::uintptr_t>(data) % 16 == 0 &&
         stride * static_cast<std::int64_t>(dtype_size(dtype)) % 16 == 0;
}

}  // namespace replayeval::cuda
