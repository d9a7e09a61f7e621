// The rounding points of storage_scalar.h over whole rows, for the CPU kernels (Highway; included once per target).
#if defined(REPLAYEVAL_KERNELS_STORAGE_SIMD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef REPLAYEVAL_KERNELS_STORAGE_SIMD_INL_H_
#undef REPLAYEVAL_KERNELS_STORAGE_SIMD_INL_H_
#else
#define REPLAYEVAL_KERNELS_STORAGE_SIMD_INL_H_
#endif

#include "kernels/storage_scalar.h"
#include "kernels/types.h"

#include <hwy/highway.h>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

HWY_BEFORE_NAMESPACE();
namespace replayeval {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// At most 8 lanes, so that rows of a multiple of 8 elements have no remainder.
using D8 = hn::CappedTag<float, 8>;
using U8 = hn::RebindToUnsigned<D8>;
using I8 = hn::RebindToSigned<D8>;
using H8 = hn::Rebind<std::uint16_t, D8>;
using V8 = hn::Vec<D8>;
using VU8 = hn::Vec<U8>;

HWY_INLINE VU8 bits_of(V8 value) { return hn::BitCast(U8(), value); }
HWY_INLINE V8 float_of(VU8 bits) { return hn::BitCast(D8(), bits); }
HWY_INLINE VU8 constant(std::uint32_t bits) { return hn::Set(U8(), bits); }

HWY_INLINE V8 decode_bfloat16(VU8 bits) { return float_of(hn::ShiftLeft<16>(bits)); }

HWY_INLINE V8 decode_float16(VU8 bits) {
  const VU8 sign = hn::ShiftLeft<16>(hn::And(bits, constant(0x8000U)));
  const VU8 magnitude = hn::And(bits, constant(0x7FFFU));
  const VU8 rebias = constant(112U << 23U);
  const VU8 normal = hn::Add(hn::ShiftLeft<13>(magnitude), rebias);
  const VU8 special = hn::Add(normal, rebias);  // infinity and NaN: exponent 255
  const V8 scaled = hn::Mul(hn::ConvertTo(D8(), hn::BitCast(I8(), magnitude)), hn::Set(D8(), 0x1p-24F));
  const VU8 large = hn::IfThenElse(hn::Gt(magnitude, constant(0x7BFFU)), special, normal);
  const VU8 result = hn::IfThenElse(hn::Gt(magnitude, constant(0x3FFU)), large, bits_of(scaled));
  return float_of(hn::Or(result, sign));
}

HWY_INLINE VU8 encode_bfloat16(V8 value) {
  const VU8 bits = bits_of(value);
  const VU8 high = hn::ShiftRight<16>(bits);
  const VU8 odd = hn::And(high, constant(1U));
  const VU8 rounded = hn::ShiftRight<16>(hn::Add(bits, hn::Add(odd, constant(0x7FFFU))));
  const auto nan = hn::Gt(hn::And(bits, constant(0x7FFFFFFFU)), constant(0x7F800000U));
  return hn::IfThenElse(nan, hn::Or(high, constant(0x40U)), rounded);
}

HWY_INLINE VU8 encode_float16(V8 value) {
  const VU8 bits = bits_of(value);
  const VU8 sign = hn::And(hn::ShiftRight<16>(bits), constant(0x8000U));
  const VU8 magnitude = hn::And(bits, constant(0x7FFFFFFFU));
  const VU8 shifted = bits_of(hn::Add(float_of(magnitude), hn::Set(D8(), 0.5F)));
  const VU8 small = hn::Sub(shifted, constant(0x3F000000U));
  const VU8 odd = hn::And(hn::ShiftRight<13>(magnitude), constant(1U));
  const VU8 rounded = hn::Add(magnitude, hn::Add(odd, constant(0xFFFU)));
  const VU8 normal = hn::ShiftRight<13>(hn::Sub(rounded, constant(0x38000000U)));
  VU8 result = hn::IfThenElse(hn::Gt(constant(0x38800000U), magnitude), small, normal);
  result = hn::IfThenElse(hn::Gt(magnitude, constant(0x477FEFFFU)), constant(0x7C00U), result);
  result = hn::IfThenElse(hn::Gt(magnitude, constant(0x7F800000U)), constant(0x7E00U), result);
  return hn::Or(result, sign);
}

HWY_INLINE V8 saturated(V8 value, float limit) {
  const V8 high = hn::Set(D8(), limit);
  const V8 low = hn::Set(D8(), -limit);
  const V8 kept = hn::IfThenElse(hn::Gt(value, high), high, value);
  return hn::IfThenElse(hn::Lt(kept, low), low, kept);
}

template <Dtype kDtype>
HWY_INLINE VU8 encode(V8 value, bool saturate) {
  static_assert(kDtype != Dtype::float32);
  const V8 kept = saturate ? saturated(value, storage::max_finite(kDtype)) : value;
  return kDtype == Dtype::bfloat16 ? encode_bfloat16(kept) : encode_float16(kept);
}

template <Dtype kDtype>
HWY_INLINE V8 decode(VU8 bits) {
  return kDtype == Dtype::bfloat16 ? decode_bfloat16(bits) : decode_float16(bits);
}

template <Dtype kDtype>
HWY_INLINE void widen_16bit(const std::uint16_t* from, std::size_t n, float* to) {
  const std::size_t lanes = hn::Lanes(D8());
  std::size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    hn::StoreU(decode<kDtype>(hn::PromoteTo(U8(), hn::LoadU(H8(), from + i))), D8(), to + i);
  }
  for (; i < n; ++i) to[i] = storage::decode(from[i], kDtype);
}

// to[0..n) = the float32 values of `from`, which starts at element `offset`.
HWY_INLINE void widen(Dtype dtype, const void* from, std::int64_t offset, std::size_t n, float* to) {
  if (dtype == Dtype::float32) {
    std::memcpy(to, static_cast<const float*>(from) + offset, n * sizeof(float));
    return;
  }
  const std::uint16_t* packed = static_cast<const std::uint16_t*>(from) + offset;
  if (dtype == Dtype::bfloat16) return widen_16bit<Dtype::bfloat16>(packed, n, to);
  widen_16bit<Dtype::float16>(packed, n, to);
}

template <Dtype kDtype>
HWY_INLINE void narrow_16bit(bool saturate, const float* from, std::size_t n, std::uint16_t* to) {
  const std::size_t lanes = hn::Lanes(D8());
  std::size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const VU8 bits = encode<kDtype>(hn::LoadU(D8(), from + i), saturate);
    hn::StoreU(hn::DemoteTo(H8(), hn::BitCast(I8(), bits)), H8(), to + i);
  }
  const Storage storage{kDtype, saturate ? Overflow::saturate : Overflow::infinity};
  for (; i < n; ++i) to[i] = static_cast<std::uint16_t>(storage::encode(from[i], storage));
}

// Stores `from` rounded; `to` starts at element `offset`.
HWY_INLINE void narrow(Storage storage, const float* from, std::size_t n, void* to, std::int64_t offset) {
  if (storage.dtype == Dtype::float32) {
    std::memcpy(static_cast<float*>(to) + offset, from, n * sizeof(float));
    return;
  }
  const bool saturate = storage.overflow == Overflow::saturate;
  std::uint16_t* packed = static_cast<std::uint16_t*>(to) + offset;
  if (storage.dtype == Dtype::bfloat16) return narrow_16bit<Dtype::bfloat16>(saturate, from, n, packed);
  narrow_16bit<Dtype::float16>(saturate, from, n, packed);
}

template <Dtype kDtype>
HWY_INLINE void round_16bit(bool saturate, float* values, std::size_t n) {
  const std::size_t lanes = hn::Lanes(D8());
  std::size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const VU8 bits = encode<kDtype>(hn::LoadU(D8(), values + i), saturate);
    hn::StoreU(decode<kDtype>(bits), D8(), values + i);
  }
  const Storage storage{kDtype, saturate ? Overflow::saturate : Overflow::infinity};
  for (; i < n; ++i) values[i] = storage::rounded(values[i], storage);
}

// storage::count over whole rows. Magnitudes compare as integers; nearly always nothing has to be counted.
template <Dtype kDtype>
HWY_INLINE void count_stores(bool saturate, const float* values, std::size_t n, StorageCounts& counts) {
  const VU8 magnitude_bits = constant(0x7FFFFFFFU);
  const VU8 last_finite = constant(0x7F7FFFFFU);
  const VU8 last_stored = constant(std::bit_cast<std::uint32_t>(storage::max_finite(kDtype)));
  const VU8 first_normal = constant(std::bit_cast<std::uint32_t>(storage::min_normal(kDtype)));
  const std::size_t lanes = hn::Lanes(D8());
  std::size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const V8 value = hn::LoadU(D8(), values + i);
    const VU8 magnitude = hn::And(bits_of(value), magnitude_bits);
    VU8 kept = magnitude;
    if constexpr (kDtype != Dtype::float32) {
      kept = hn::And(bits_of(decode<kDtype>(encode<kDtype>(value, saturate))), magnitude_bits);
    }
    const auto subnormal = hn::AndNot(hn::Eq(kept, hn::Zero(U8())), hn::Lt(kept, first_normal));
    const auto too_large = hn::Gt(magnitude, last_stored);
    if (HWY_LIKELY(hn::AllFalse(U8(), hn::Or(subnormal, too_large)))) continue;
    const std::size_t non_finite = hn::CountTrue(U8(), hn::Gt(magnitude, last_finite));
    counts.non_finite += non_finite;
    counts.saturated += hn::CountTrue(U8(), too_large) - non_finite;
    counts.subnormal += hn::CountTrue(U8(), subnormal);
  }
  const Storage storage{kDtype, saturate ? Overflow::saturate : Overflow::infinity};
  for (; i < n; ++i) storage::count(values[i], storage, counts);
}

template <Dtype kDtype>
HWY_INLINE void round_and_count(bool saturate, float* values, std::size_t n, StorageCounts* counts) {
  if (counts != nullptr) count_stores<kDtype>(saturate, values, n, *counts);
  if constexpr (kDtype != Dtype::float32) round_16bit<kDtype>(saturate, values, n);
}

// What storing and loading again would make of `values`; adds to `counts` unless null.
HWY_INLINE void round_in_place(Storage storage, float* values, std::size_t n, StorageCounts* counts) {
  const bool saturate = storage.overflow == Overflow::saturate;
  if (storage.dtype == Dtype::float32) return round_and_count<Dtype::float32>(saturate, values, n, counts);
  if (storage.dtype == Dtype::bfloat16) return round_and_count<Dtype::bfloat16>(saturate, values, n, counts);
  round_and_count<Dtype::float16>(saturate, values, n, counts);
}

}  // namespace HWY_NAMESPACE
}  // namespace replayeval
HWY_AFTER_NAMESPACE();

#endif  // REPLAYEVAL_KERNELS_STORAGE_SIMD_INL_H_
