#include "kernels/bench/fill.h"

#include "kernels/storage_scalar.h"

#include <algorithm>
#include <random>

namespace replayeval::bench {
namespace {

constexpr std::size_t kRotatedBytes = 600'000'000;  // ten times the L2 cache of the largest GPU here
constexpr std::size_t kMostCopies = 1024;           // of small shapes, which are timed in the cache then
constexpr std::size_t kPatternFloats = std::size_t{1} << 22;

const std::vector<std::byte>& pattern(Dtype dtype) {
  static std::vector<std::byte> patterns[3];
  std::vector<std::byte>& values = patterns[static_cast<std::size_t>(dtype)];
  if (!values.empty()) return values;
  std::mt19937 random(1);
  std::normal_distribution<float> standard;
  values.resize(kPatternFloats * dtype_size(dtype));
  for (std::size_t i = 0; i < kPatternFloats; ++i)
    storage::store(values.data(), i, standard(random), {dtype, Overflow::infinity});
  return values;
}

}  // namespace

std::size_t rotated_copies(std::size_t bytes) {
  return std::clamp<std::size_t>((kRotatedBytes + bytes - 1) / bytes, 1, kMostCopies);
}

void fill_normal(BenchDevice& device, void* memory, std::size_t bytes, Dtype dtype, std::size_t begin) {
  auto* to = static_cast<std::byte*>(memory);
  const std::vector<std::byte>& values = pattern(dtype);
  // The first round of the pattern from `begin` on, then that again and again.
  const std::size_t first = begin * dtype_size(dtype) % values.size();
  const std::size_t to_end = std::min(bytes, values.size() - first);
  device.upload(to, values.data() + first, to_end);
  if (to_end < bytes) device.upload(to + to_end, values.data(), std::min(bytes - to_end, first));
  std::size_t filled = std::min(bytes, values.size());
  while (filled < bytes) {
    const std::size_t more = std::min(filled, bytes - filled);
    device.copy(to + filled, to, more);
    filled += more;
  }
}

float* make_uniform(BenchDevice& device, std::int64_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> distribution(-1.0F, 1.0F);
  std::vector<float> values(static_cast<std::size_t>(count));
  for (float& value : values) value = distribution(random);
  auto* memory = static_cast<float*>(device.allocate(values.size() * sizeof(float)));
  device.upload(memory, values.data(), values.size() * sizeof(float));
  return memory;
}

std::vector<float> widened(const std::vector<std::uint16_t>& bfloat16) {
  std::vector<float> values(bfloat16.size());
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = storage::load(bfloat16.data(), i, Dtype::bfloat16);
  return values;
}

}  // namespace replayeval::bench
