// Elements of a token's small operands, loaded long before they are decoded.
#pragma once

#include "kernels/storage_cuda.cuh"

#include <cstdint>

namespace replayeval::cuda {

// Whether rows of a small operand can be read four elements at a time.
inline bool lies_in_fours(const void* data, std::int64_t stride, Dtype dtype) {
  return reinterpret_cast<std::uintptr_t>(data) % (4 * dtype_size(dtype)) == 0 && stride % 4 == 0;
}

__device__ __forceinline__ const char* element_at(const void* data, std::int64_t index, Dtype dtype) {
  return static_cast<const char*>(data) + (index << (dtype == Dtype::float32 ? 2 : 1));
}

// Elements of a small operand on their way, as they lie in memory: to decode them is to wait for them.
struct RawElement {
  std::uint32_t bits;

  __device__ __forceinline__ void load(const void* data, std::int64_t index, Dtype dtype) {
    bits = dtype == Dtype::float32 ? static_cast<const std::uint32_t*>(data)[index]
                                   : static_cast<const std::uint16_t*>(data)[index];
  }
  // Without branches, which cost more than the conversions.
  __device__ __forceinline__ float decode(Dtype dtype) const {
    const float wide = __uint_as_float(bits << (dtype == Dtype::bfloat16 ? 16 : 0));
    const float half = decode_float16(bits);
    return dtype == Dtype::float16 ? half : wide;
  }
};

struct RawFour {
  std::uint32_t words[4];  // one element each, or two 16-bit elements in each of the first two

  // fours: lies_in_fours().
  __device__ __forceinline__ void load(const void* data, std::int64_t index, Dtype dtype, bool fours) {
    if (!fours) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        RawElement element;
        element.load(data, index + i, dtype);
        words[i] = element.bits;
      }
    } else if (dtype == Dtype::float32) {
      const uint4 four = *reinterpret_cast<const uint4*>(static_cast<const float*>(data) + index);
      words[0] = four.x, words[1] = four.y, words[2] = four.z, words[3] = four.w;
    } else {
      const uint2 four = *reinterpret_cast<const uint2*>(static_cast<const std::uint16_t*>(data) + index);
      words[0] = four.x, words[1] = four.y;
    }
  }
  __device__ __forceinline__ void decode(Dtype dtype, bool fours, float (&to)[4]) const {
    const bool pairs = fours && dtype != Dtype::float32;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const std::uint32_t paired = i % 2 == 0 ? words[i / 2] & 0xFFFFU : words[i / 2] >> 16;
      to[i] = RawElement{pairs ? paired : words[i]}.decode(dtype);
    }
  }
};

}  // namespace replayeval::cuda
