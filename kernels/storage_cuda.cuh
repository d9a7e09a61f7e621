// The rounding points of storage_scalar.h on the GPU.
#pragma once

#include "kernels/types.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>
#include <type_traits>

namespace replayeval::cuda {

__device__ __forceinline__ float decode_bfloat16(std::uint32_t bits) { return __uint_as_float(bits << 16); }
__device__ __forceinline__ float decode_float16(std::uint32_t bits) {
  return __half2float(__ushort_as_half(static_cast<unsigned short>(bits)));
}
__device__ __forceinline__ std::uint32_t encode_bfloat16(float value) {
  return __bfloat16_as_ushort(__float2bfloat16_rn(value));
}
__device__ __forceinline__ std::uint32_t encode_float16(float value) {
  return __half_as_ushort(__float2half_rn(value));
}

template <Dtype kDtype>
__device__ __forceinline__ constexpr float max_finite() {
  return kDtype == Dtype::bfloat16 ? 0x1.FEp+127F : kDtype == Dtype::float16 ? 65504.0F : 0x1.FFFFFEp+127F;
}

template <Dtype kDtype>
__device__ __forceinline__ float saturated(float value) {
  constexpr float limit = max_finite<kDtype>();
  const float kept = value > limit ? limit : value;  // false for NaN, which stays
  return kept < -limit ? -limit : kept;
}

// The stored bits, in the low half for the 16-bit types.
template <Dtype kDtype>
__device__ __forceinline__ std::uint32_t encode(float value, bool saturate) {
  if constexpr (kDtype == Dtype::float32) return __float_as_uint(value);
  const float kept = saturate ? saturated<kDtype>(value) : value;
  if constexpr (kDtype == Dtype::bfloat16) return encode_bfloat16(kept);
  return encode_float16(kept);
}

template <Dtype kDtype>
__device__ __forceinline__ float decode(std::uint32_t bits) {
  if constexpr (kDtype == Dtype::float32) return __uint_as_float(bits);
  if constexpr (kDtype == Dtype::bfloat16) return decode_bfloat16(bits);
  return decode_float16(bits);
}

template <Dtype kDtype>
__device__ __forceinline__ float rounded(float value, bool saturate) {
  return decode<kDtype>(encode<kDtype>(value, saturate));
}

// Two values as stored, the first in the low half.
template <Dtype kDtype>
__device__ __forceinline__ std::uint32_t encode_pair(float low, float high) {
  if constexpr (kDtype == Dtype::bfloat16) {
    const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
    return *reinterpret_cast<const std::uint32_t*>(&pair);
  } else {
    const __half2 pair = __floats2half2_rn(low, high);
    return *reinterpret_cast<const std::uint32_t*>(&pair);
  }
}

// Four consecutive elements as stored.
template <Dtype kDtype>
struct Packed4 {
  using Bits = std::conditional_t<kDtype == Dtype::float32, uint4, uint2>;
  Bits bits;

  // `index` is a multiple of 4 and `data` aligned to 16 bytes.
  __device__ __forceinline__ void load(const void* data, std::int64_t index) {
    using Element = std::conditional_t<kDtype == Dtype::float32, float, std::uint16_t>;
    bits = *reinterpret_cast<const Bits*>(static_cast<const Element*>(data) + index);
  }
  __device__ __forceinline__ void unpack(float (&to)[4]) const {
    if constexpr (kDtype == Dtype::float32) {
      to[0] = __uint_as_float(bits.x), to[1] = __uint_as_float(bits.y);
      to[2] = __uint_as_float(bits.z), to[3] = __uint_as_float(bits.w);
    } else {
      to[0] = decode<kDtype>(bits.x & 0xFFFFU), to[1] = decode<kDtype>(bits.x >> 16);
      to[2] = decode<kDtype>(bits.y & 0xFFFFU), to[3] = decode<kDtype>(bits.y >> 16);
    }
  }
  // The c-th alone.
  __device__ __forceinline__ float element(int c) const {
    if constexpr (kDtype == Dtype::float32) {
      return __uint_as_float(c == 0 ? bits.x : c == 1 ? bits.y : c == 2 ? bits.z : bits.w);
    } else {
      const std::uint32_t pair = c < 2 ? bits.x : bits.y;
      return decode<kDtype>(c % 2 == 0 ? pair & 0xFFFFU : pair >> 16);
    }
  }
  __device__ __forceinline__ void pack(const float (&from)[4]) {
    if constexpr (kDtype == Dtype::float32) {
      bits = make_uint4(__float_as_uint(from[0]), __float_as_uint(from[1]), __float_as_uint(from[2]),
                        __float_as_uint(from[3]));
    } else {
      bits = make_uint2(encode_pair<kDtype>(from[0], from[1]), encode_pair<kDtype>(from[2], from[3]));
    }
  }
  __device__ __forceinline__ void store(void* data, std::int64_t index) const {
    using Element = std::conditional_t<kDtype == Dtype::float32, float, std::uint16_t>;
    *reinterpret_cast<Bits*>(static_cast<Element*>(data) + index) = bits;
  }
};

template <Dtype kDtype>
__device__ __forceinline__ void load4(const void* data, std::int64_t index, float (&to)[4]) {
  Packed4<kDtype> packed;
  packed.load(data, index);
  packed.unpack(to);
}

template <Dtype kDtype>
__device__ __forceinline__ void store4(void* data, std::int64_t index, const float (&from)[4]) {
  Packed4<kDtype> packed;
  packed.pack(from);
  packed.store(data, index);
}

// One element of a type known at run time, for the small operands.
__device__ __forceinline__ float load_element(const void* data, std::int64_t index, Dtype dtype) {
  if (dtype == Dtype::float32) return static_cast<const float*>(data)[index];
  const std::uint32_t bits = static_cast<const std::uint16_t*>(data)[index];
  return dtype == Dtype::bfloat16 ? decode_bfloat16(bits) : decode_float16(bits);
}

__device__ __forceinline__ void store_element(void* data, std::int64_t index, float value, Dtype dtype) {
  if (dtype == Dtype::float32) {
    static_cast<float*>(data)[index] = value;
  } else {
    const std::uint32_t bits = dtype == Dtype::bfloat16 ? encode_bfloat16(value) : encode_float16(value);
    static_cast<std::uint16_t*>(data)[index] = static_cast<std::uint16_t>(bits);
  }
}

// Four consecutive elements of a small operand: type and alignment are found out here.
__device__ __forceinline__ void load4_any(const void* data, std::int64_t index, Dtype dtype, float (&to)[4]) {
  if (dtype == Dtype::float32) {
    const float* at = static_cast<const float*>(data) + index;
    if (reinterpret_cast<std::uintptr_t>(at) % 16 == 0) return load4<Dtype::float32>(at, 0, to);
#pragma unroll
    for (int i = 0; i < 4; ++i) to[i] = at[i];
    return;
  }
  const std::uint16_t* at = static_cast<const std::uint16_t*>(data) + index;
  Packed4<Dtype::bfloat16> packed;
  if (reinterpret_cast<std::uintptr_t>(at) % 8 == 0) {
    packed.load(at, 0);
  } else {
    packed.bits.x = at[0] | static_cast<std::uint32_t>(at[1]) << 16;
    packed.bits.y = at[2] | static_cast<std::uint32_t>(at[3]) << 16;
  }
  if (dtype == Dtype::bfloat16) {
    packed.unpack(to);
  } else {
    Packed4<Dtype::float16>{packed.bits}.unpack(to);
  }
}

// A thread's share of StorageCounts.
struct ThreadCounts {
  std::uint32_t saturated = 0, subnormal = 0, non_finite = 0;
};

template <Dtype kDtype>
__device__ __forceinline__ void count(float value, bool saturate, ThreadCounts& counts) {
  const float magnitude = fabsf(value);
  if (!(magnitude <= max_finite<Dtype::float32>())) {
    ++counts.non_finite;
  } else if (magnitude > max_finite<kDtype>()) {
    ++counts.saturated;
  }
  const float kept = fabsf(rounded<kDtype>(value, saturate));
  if (kept > 0.0F && kept < (kDtype == Dtype::float16 ? 0x1p-14F : 0x1p-126F)) ++counts.subnormal;
}

// Adds every thread's counts; all lanes of the warp take part.
__device__ inline void add_counts(const ThreadCounts& counts, StorageCounts* total) {
  const unsigned saturated = __reduce_add_sync(0xFFFFFFFFU, counts.saturated);
  const unsigned subnormal = __reduce_add_sync(0xFFFFFFFFU, counts.subnormal);
  const unsigned non_finite = __reduce_add_sync(0xFFFFFFFFU, counts.non_finite);
  if (threadIdx.x % 32 != 0) return;
  const auto add = [](std::uint64_t& to, unsigned amount) {
    if (amount != 0) atomicAdd(reinterpret_cast<unsigned long long*>(&to), static_cast<unsigned long long>(amount));
  };
  add(total->saturated, saturated);
  add(total->subnormal, subnormal);
  add(total->non_finite, non_finite);
}

}  // namespace replayeval::cuda
