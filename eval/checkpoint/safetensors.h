// One safetensors file: an 8-byte little-endian header length, a JSON header, then the tensors' bytes.
// Format: https://github.com/huggingface/safetensors#format
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "eval/checkpoint/checkpoint.h"

namespace replayeval {

// Bytes of one element of a safetensors type ("F32", "BF16", ...); nullopt for a type that the format does not know.
std::optional<std::size_t> safetensors_dtype_size(std::string_view dtype);

// Reads and checks the header: its length, each entry's type, shape and offsets, and that the entries tile the data
// section with neither gap nor overlap. `bytes` are the whole file's; the views point into them. Throws
// CheckpointError.
std::vector<TensorView> read_safetensors(std::span<const std::byte> bytes, const std::filesystem::path& file);

// A tensor that is going to be written.
struct TensorLayout {
  std::string name, dtype;  // dtype: safetensors spelling
  std::vector<std::int64_t> shape;

  std::size_t bytes() const;  // throws std::invalid_argument on a dtype that the format does not know
};

// What stands before the data of a file that holds these tensors one behind the other: header length and header, padded
// so that the data begin at a multiple of 8.
std::string safetensors_header(std::span<const TensorLayout> tensors);

}  // namespace replayeval
