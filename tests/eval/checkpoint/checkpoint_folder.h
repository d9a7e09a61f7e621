// Checkpoint folders for tests, whole or with one thing wrong.
#pragma once

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "tests/temporary_folder.h"

namespace replayeval::testing {

struct StoredTensor {
  std::string dtype = "F32";
  std::vector<std::int64_t> shape;
  std::string bytes;
};

inline StoredTensor float_tensor(std::vector<std::int64_t> shape, const std::vector<float>& values) {
  std::string bytes(values.size() * sizeof(float), '\0');
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return {"F32", std::move(shape), std::move(bytes)};
}

using Tensors = std::map<std::string, StoredTensor>;

// The header of a file that holds `tensors` one behind the other.
inline nlohmann::json safetensors_header(const Tensors& tensors) {
  nlohmann::json header = {{"__metadata__", {{"format", "pt"}}}};
  std::size_t offset = 0;
  for (const auto& [name, tensor] : tensors) {
    header[name] = {
        {"dtype", tensor.dtype}, {"shape", tensor.shape}, {"data_offsets", {offset, offset + tensor.bytes.size()}}};
    offset += tensor.bytes.size();
  }
  return header;
}

inline std::string data_of(const Tensors& tensors) {
  std::string data;
  for (const auto& [name, tensor] : tensors) data += tensor.bytes;
  return data;
}

// The file's bytes with any header text, so that tests can lie in it.
inline std::string safetensors_bytes(const std::string& header, const std::string& data) {
  std::string bytes(8, '\0');
  for (std::size_t i = 0; i < 8; ++i) bytes[i] = static_cast<char>((header.size() >> (8 * i)) & 0xff);
  return bytes + header + data;
}

inline void write_bytes(const std::filesystem::path& file, const std::string& bytes) {
  std::ofstream(file, std::ios::binary) << bytes;
}

inline void write_safetensors(const std::filesystem::path& file, const Tensors& tensors) {
  write_bytes(file, safetensors_bytes(safetensors_header(tensors).dump(), data_of(tensors)));
}

}  // namespace replayeval::testing
