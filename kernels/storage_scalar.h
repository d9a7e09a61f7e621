// The rounding points, one value at a time: what storage_simd-inl.h and storage_cuda.cuh do in bulk.
//
// A float32 value becomes bfloat16 or float16 to nearest, ties to even. A magnitude that rounds past the largest finite
// value becomes infinity, or with Overflow::saturate the largest finite value; saturating treats an infinity alike and
// keeps NaN a NaN. float32 storage changes nothing.
#pragma once

#include "kernels/types.h"

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>

namespace replayeval::storage {

inline constexpr float kMaxBfloat16 = 0x1.FEp+127F;
inline constexpr float kMaxFloat16 = 65504.0F;
inline constexpr float kMinNormalFloat16 = 0x1p-14F;
inline constexpr float kMinNormalFloat32 = 0x1p-126F;  // bfloat16 has the same

inline float max_finite(Dtype dtype) {
  if (dtype == Dtype::bfloat16) return kMaxBfloat16;
  return dtype == Dtype::float16 ? kMaxFloat16 : 0x1.FFFFFEp+127F;
}

inline float min_normal(Dtype dtype) { return dtype == Dtype::float16 ? kMinNormalFloat16 : kMinNormalFloat32; }

inline float decode_bfloat16(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16U);
}

inline float decode_float16(std::uint16_t bits) {
  const std::uint32_t sign = (bits & 0x8000U) << 16U;
  const std::uint32_t exponent = (bits >> 10U) & 0x1FU;
  const std::uint32_t mantissa = bits & 0x3FFU;
  if (exponent == 0x1FU) return std::bit_cast<float>(sign | 0x7F800000U | (mantissa << 13U));
  if (exponent != 0) return std::bit_cast<float>(sign | ((exponent + 112U) << 23U) | (mantissa << 13U));
  const float magnitude = static_cast<float>(mantissa) * 0x1p-24F;
  return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(magnitude));
}

inline std::uint16_t encode_bfloat16(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  if (std::isnan(value)) return static_cast<std::uint16_t>((bits >> 16U) | 0x40U);
  return static_cast<std::uint16_t>((bits + 0x7FFFU + ((bits >> 16U) & 1U)) >> 16U);
}

inline std::uint16_t encode_float16(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (bits >> 16U) & 0x8000U;
  const std::uint32_t magnitude = bits & 0x7FFFFFFFU;
  if (magnitude > 0x7F800000U) return static_cast<std::uint16_t>(sign | 0x7E00U);
  if (magnitude >= 0x477FF000U) return static_cast<std::uint16_t>(sign | 0x7C00U);  // 65520 and above
  if (magnitude < 0x38800000U) {
    // Below 2^-14 the result counts multiples of 2^-24; adding 1/2 makes float32's own rounding land on them.
    const float shifted = std::bit_cast<float>(magnitude) + 0.5F;
    return static_cast<std::uint16_t>(sign | (std::bit_cast<std::uint32_t>(shifted) - 0x3F000000U));
  }
  const std::uint32_t rounded = magnitude + 0xFFFU + ((magnitude >> 13U) & 1U);
  return static_cast<std::uint16_t>(sign | ((rounded - 0x38000000U) >> 13U));
}

inline float saturated(float value, Dtype dtype) {
  const float limit = max_finite(dtype);
  if (value > limit) return limit;
  return value < -limit ? -limit : value;
}

// The stored bits of `value`, in the low half for the 16-bit types.
inline std::uint32_t encode(float value, Storage storage) {
  if (storage.dtype == Dtype::float32) return std::bit_cast<std::uint32_t>(value);
  const float kept = storage.overflow == Overflow::saturate ? saturated(value, storage.dtype) : value;
  return storage.dtype == Dtype::bfloat16 ? encode_bfloat16(kept) : encode_float16(kept);
}

inline float decode(std::uint32_t bits, Dtype dtype) {
  if (dtype == Dtype::float32) return std::bit_cast<float>(bits);
  return dtype == Dtype::bfloat16 ? decode_bfloat16(static_cast<std::uint16_t>(bits))
                                  : decode_float16(static_cast<std::uint16_t>(bits));
}

// The value that a store followed by a load gives.
inline float rounded(float value, Storage storage) { return decode(encode(value, storage), storage.dtype); }

inline float load(const void* data, std::size_t index, Dtype dtype) {
  if (dtype == Dtype::float32) return static_cast<const float*>(data)[index];
  return decode(static_cast<const std::uint16_t*>(data)[index], dtype);
}

inline void store(void* data, std::size_t index, float value, Storage storage) {
  if (storage.dtype == Dtype::float32) {
    static_cast<float*>(data)[index] = value;
  } else {
    static_cast<std::uint16_t*>(data)[index] = static_cast<std::uint16_t>(encode(value, storage));
  }
}

// Adds what storing `value` means to `counts`.
inline void count(float value, Storage storage, StorageCounts& counts) {
  const float magnitude = std::fabs(value);
  if (!(magnitude <= 0x1.FFFFFEp+127F)) {
    ++counts.non_finite;
  } else if (magnitude > max_finite(storage.dtype)) {
    ++counts.saturated;
  }
  const float kept = std::fabs(rounded(value, storage));
  if (kept > 0.0F && kept < min_normal(storage.dtype)) ++counts.subnormal;
}

}  // namespace replayeval::storage
