// Plain vocabulary of the decode kernels: element types, rounding points, devices.
// No LibTorch here: kernels/ can be used alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace replayeval {

enum class Dtype : std::uint8_t { float32, bfloat16, float16 };

// "float32" | "bfloat16" | "float16"; parse_dtype returns nullopt on any other word.
std::string_view dtype_name(Dtype dtype);
std::optional<Dtype> parse_dtype(std::string_view name);
std::size_t dtype_size(Dtype dtype);  // bytes

// What a store does with a magnitude above the largest finite value of its type.
enum class Overflow : std::uint8_t { infinity, saturate };
std::string_view overflow_name(Overflow overflow);
std::optional<Overflow> parse_overflow(std::string_view name);

// A rounding point: values are float32 in arithmetic and become `dtype` here, to nearest even.
struct Storage {
  Dtype dtype = Dtype::float32;
  Overflow overflow = Overflow::infinity;
};

// How many stored state elements were out of the ordinary; summed over stores, never reset by kernels.
struct StorageCounts {
  std::uint64_t saturated = 0;   // finite in float32, beyond the largest finite value of the storage type
  std::uint64_t subnormal = 0;   // stored as a subnormal of the storage type
  std::uint64_t non_finite = 0;  // infinity or NaN before the store
};

enum class DeviceKind : std::uint8_t { cpu, cuda };

// Where a call runs. `stream` is a cudaStream_t (null: the default stream); unused on the CPU.
struct Device {
  DeviceKind kind = DeviceKind::cpu;
  void* stream = nullptr;
};

// True when this build holds the CUDA kernels (nvcc was there); says nothing about a GPU being present.
bool built_with_cuda();

}  // namespace replayeval
