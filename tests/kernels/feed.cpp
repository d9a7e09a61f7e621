#include "tests/kernels/feed.h"

#include "kernels/storage_scalar.h"

#include <cstring>
#include <stdexcept>

namespace replayeval::testing {

std::vector<float> random_values(std::mt19937& random, std::int64_t count, float mean, float deviation, Dtype dtype) {
  std::normal_distribution<float> normal(mean, deviation);
  std::vector<float> values(static_cast<std::size_t>(count));
  for (float& value : values) value = storage::rounded(normal(random), {dtype, Overflow::infinity});
  return values;
}

std::vector<float> uniform_values(std::mt19937& random, std::int64_t count, float low, float high) {
  std::uniform_real_distribution<float> uniform(low, high);
  std::vector<float> values(static_cast<std::size_t>(count));
  for (float& value : values) value = uniform(random);
  return values;
}

DeviceBuffer gather(DeviceKind kind, const std::vector<FeedRow>& rows, std::int64_t tokens,
                    const std::vector<float>& values, std::int64_t sequence_tokens, std::int64_t width, Dtype dtype,
                    std::int64_t pad) {
  const std::int64_t stride = width + pad;
  DeviceBuffer buffer(kind, rows.size() * static_cast<std::size_t>(tokens * stride) * dtype_size(dtype));
  Bytes staged(buffer.size(), std::byte{0xFF});
  for (std::size_t r = 0; r < rows.size(); ++r) {
    if (rows[r].slot < 0) continue;
    for (std::int64_t t = 0; t < tokens; ++t) {
      const std::int64_t token = rows[r].sequence * sequence_tokens + rows[r].start + t;
      const std::size_t to =
          (r * static_cast<std::size_t>(tokens) + static_cast<std::size_t>(t)) * static_cast<std::size_t>(stride);
      for (std::int64_t i = 0; i < width; ++i) {
        storage::store(staged.data(), to + static_cast<std::size_t>(i),
                       values.at(static_cast<std::size_t>(token * width + i)), {dtype, Overflow::infinity});
      }
    }
  }
  buffer.upload(staged);
  return buffer;
}

Bytes without_padding(const Bytes& padded, std::size_t rows, std::int64_t width, std::size_t size, std::int64_t pad) {
  const auto width_bytes = static_cast<std::size_t>(width) * size;
  const auto stride_bytes = static_cast<std::size_t>(width + pad) * size;
  Bytes dense(rows * width_bytes);
  for (std::size_t r = 0; r < rows; ++r) {
    std::memcpy(dense.data() + r * width_bytes, padded.data() + r * stride_bytes, width_bytes);
    for (std::size_t i = width_bytes; i < stride_bytes; ++i) {
      if (padded[r * stride_bytes + i] != std::byte{0xFF}) throw std::runtime_error("y was written between its rows");
    }
  }
  return dense;
}

Bytes row_bits(const Bytes& dense, std::size_t bytes, std::int64_t row) {
  const auto first = dense.begin() + static_cast<std::ptrdiff_t>(static_cast<std::size_t>(row) * bytes);
  return {first, first + static_cast<std::ptrdiff_t>(bytes)};
}

}  // namespace replayeval::testing
