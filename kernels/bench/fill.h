// The benches' buffers: how many copies of one are rotated, random contents, the
// same at every call, and back.
#pragma once

#include "kernels/bench/bench_device.h"

#include <cstdint>
#include <vector>

namespace replayeval::bench {

// Of a buffer of so many bytes, that none is found in a cache when its turn comes again.
std::size_t rotated_copies(std::size_t bytes);

// Fills with one pattern of a normal distribution's values, from its element `begin` on, again and again.
void fill_normal(BenchDevice& device, void* memory, std::size_t bytes, Dtype dtype, std::size_t begin = 0);

// `count` values between -1 and 1, the same for the same seed.
float* make_uniform(BenchDevice& device, std::int64_t count, unsigned seed);

template <class T>
std::vector<T> download_values(BenchDevice& device, const T* from, std::int64_t count) {
  std::vector<T> values(static_cast<std::size_t>(count));
  device.download(values.data(), from, values.size() * sizeof(T));
  return values;
}
std::vector<float> widened(const std::vector<std::uint16_t>& bfloat16);

}  // namespace replayeval::bench
