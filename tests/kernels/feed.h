// Known tokens on their way into a decode call and its outputs back: laid out with padded strides, padded rows
// poisoned.
#pragma once

#include "tests/kernels/device_buffer.h"

#include <cstdint>
#include <random>
#include <vector>

namespace replayeval::testing {

// One row of a block: tokens start, start + 1, … of a sequence, for a slot; slot -1 is a padded row.
struct FeedRow {
  std::int32_t slot = 0;
  std::int64_t sequence = 0;
  std::int64_t start = 0;
};

inline constexpr std::int64_t kStridePad =
    3;  // elements between rows, so that no kernel counts on dense or aligned rows

std::vector<float> random_values(std::mt19937& random, std::int64_t count, float mean, float deviation, Dtype dtype);
std::vector<float> uniform_values(std::mt19937& random, std::int64_t count, float low, float high);

// The block's rows of one input, out of values [sequences, sequence_tokens, width]; rows are width + pad apart.
DeviceBuffer gather(DeviceKind kind, const std::vector<FeedRow>& rows, std::int64_t tokens,
                    const std::vector<float>& values, std::int64_t sequence_tokens, std::int64_t width, Dtype dtype,
                    std::int64_t pad = kStridePad);

// `rows` rows of `width` elements of `size` bytes without the padding between them, which must still be poisoned:
// throws std::runtime_error where it was written to.
Bytes without_padding(const Bytes& padded, std::size_t rows, std::int64_t width, std::size_t size,
                      std::int64_t pad = kStridePad);

// Row r of a result of rows of `bytes` bytes.
Bytes row_bits(const Bytes& dense, std::size_t bytes, std::int64_t row);

}  // namespace replayeval::testing
