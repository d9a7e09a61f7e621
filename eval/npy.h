// Arrays in NumPy's .npy form (version 1.0, little-endian, C order), written atomically.
// https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

namespace replayeval {

// Writes beside `path` and renames, so that a full disk or an interruption leaves no partial file.
// Throws reports::ResultsError naming the file when it cannot be written, std::invalid_argument when shape and size
// differ.
void write_npy(const std::filesystem::path& path, const std::vector<std::int64_t>& shape,
               std::span<const float> values);
void write_npy(const std::filesystem::path& path, const std::vector<std::int64_t>& shape,
               std::span<const double> values);
void write_npy(const std::filesystem::path& path, const std::vector<std::int64_t>& shape,
               std::span<const std::int64_t> values);

struct DoubleArray {
  std::vector<std::int64_t> shape;
  std::vector<double> values;
};

// Reads a float64 array that write_npy wrote. Throws std::runtime_error naming the file, what was found and expected.
DoubleArray read_npy_double(const std::filesystem::path& path);

}  // namespace replayeval
