#include "eval/checkpoint/safetensors.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <utility>

#include "eval/checkpoint/json_text.h"

namespace replayeval {
namespace {

using nlohmann::json;

constexpr std::size_t length_bytes = 8;
constexpr std::uint64_t longest_header = 100'000'000;  // the format's own limit

struct Extent {
  std::uint64_t begin = 0, end = 0;
};

std::string quoted(const std::string& name) { return "tensor \"" + name + "\""; }

std::uint64_t read_header_length(std::span<const std::byte> bytes, const std::string& file) {
  if (bytes.size() < length_bytes)
    throw CheckpointError(file + ": truncated: " + std::to_string(bytes.size()) +
                          " bytes; expected at least the 8 bytes of the header length");
  std::uint64_t length = 0;
  for (std::size_t i = 0; i < length_bytes; ++i) length |= std::to_integer<std::uint64_t>(bytes[i]) << (8 * i);
  const std::uint64_t room = bytes.size() - length_bytes;
  if (length > longest_header)
    throw CheckpointError(file + ": header length " + std::to_string(length) + " in bytes 0..7; expected at most " +
                          std::to_string(longest_header));
  if (length > room)
    throw CheckpointError(file + ": truncated, or its header length lies: header length " + std::to_string(length) +
                          " in bytes 0..7, but only " + std::to_string(room) + " bytes follow");
  return length;
}

// The entry's shape and its number of elements; overflow of the product is an error, not a small number.
std::pair<std::vector<std::int64_t>, std::uint64_t> read_shape(const json& entry, const std::string& where) {
  const auto found = entry.find("shape");
  if (found == entry.end() || !found->is_array())
    throw CheckpointError(where + ": shape " + (found == entry.end() ? "is missing" : show(*found)) +
                          "; expected a list of sizes");
  std::vector<std::int64_t> shape;
  std::uint64_t elements = 1;
  for (const json& size : *found) {
    if (!size.is_number_unsigned() ||
        size.get<std::uint64_t>() > std::uint64_t{std::numeric_limits<std::int64_t>::max()})
      throw CheckpointError(where + ": size " + show(size) + " in shape; expected a non-negative integer");
    const auto value = size.get<std::uint64_t>();
    if (value != 0 && elements > std::numeric_limits<std::int64_t>::max() / value)
      throw CheckpointError(where + ": shape " + show(*found) + " has more elements than 63 bits count");
    elements *= value;
    shape.push_back(static_cast<std::int64_t>(value));
  }
  return {std::move(shape), elements};
}

Extent read_extent(const json& entry, std::uint64_t data_size, const std::string& where) {
  const auto found = entry.find("data_offsets");
  if (found == entry.end() || !found->is_array() || found->size() != 2 || !(*found)[0].is_number_unsigned() ||
      !(*found)[1].is_number_unsigned())
    throw CheckpointError(where + ": data_offsets " + (found == entry.end() ? "are missing" : show(*found)) +
                          "; expected [begin, end]");
  const Extent extent{(*found)[0].get<std::uint64_t>(), (*found)[1].get<std::uint64_t>()};
  if (extent.begin > extent.end || extent.end > data_size)
    throw CheckpointError(where + ": data_offsets " + show(*found) + " do not lie in the " + std::to_string(data_size) +
                          " bytes of data that the file holds (truncated file, or a header that lies)");
  return extent;
}

TensorView read_entry(const std::string& name, const json& entry, std::span<const std::byte> data,
                      const std::filesystem::path& file, Extent& extent) {
  const std::string where = file.string() + ": header: " + quoted(name);
  if (!entry.is_object()) throw CheckpointError(where + ": " + show(entry) + "; expected an object");
  const auto dtype = entry.find("dtype");
  const bool is_text = dtype != entry.end() && dtype->is_string();
  const auto element = is_text ? safetensors_dtype_size(dtype->get<std::string>()) : std::nullopt;
  if (!element)
    throw CheckpointError(where + ": dtype " + (dtype == entry.end() ? "is missing" : show(*dtype)) +
                          "; expected a safetensors type such as F32, F16 or BF16");
  auto [shape, elements] = read_shape(entry, where);
  extent = read_extent(entry, data.size(), where);
  const std::uint64_t size = extent.end - extent.begin;
  if (elements > std::numeric_limits<std::uint64_t>::max() / *element || size != elements * *element)
    throw CheckpointError(where + ": data_offsets " + show(entry.at("data_offsets")) + " span " + std::to_string(size) +
                          " bytes; expected " + std::to_string(elements) + " elements of " + std::to_string(*element) +
                          " bytes for shape " + show(entry.at("shape")) + " and dtype " + show(*dtype));
  return {name, dtype->get<std::string>(), std::move(shape), data.subspan(extent.begin, size), file};
}

// In order of position, each tensor must begin where the one before it ended, and the last end with the file.
void check_tiling(std::vector<std::pair<Extent, std::string>> extents, std::uint64_t data_size,
                  const std::string& file) {
  std::sort(extents.begin(), extents.end(), [](const auto& a, const auto& b) {
    return std::pair(a.first.begin, a.first.end) < std::pair(b.first.begin, b.first.end);
  });
  std::uint64_t covered = 0;
  for (const auto& [extent, name] : extents) {
    if (extent.begin != covered)
      throw CheckpointError(file + ": header: " + quoted(name) + " begins at byte " + std::to_string(extent.begin) +
                            " of the data, " + (extent.begin < covered ? "overlapping the tensor" : "leaving a gap") +
                            " before it; expected " + std::to_string(covered));
    covered = extent.end;
  }
  if (covered != data_size)
    throw CheckpointError(file + ": " + std::to_string(data_size) + " bytes of data; expected " +
                          std::to_string(covered) + ", where the last tensor ends");
}

}  // namespace

std::optional<std::size_t> safetensors_dtype_size(std::string_view dtype) {
  static constexpr std::array<std::pair<std::string_view, std::size_t>, 14> sizes = {{{"BOOL", 1},
                                                                                      {"U8", 1},
                                                                                      {"I8", 1},
                                                                                      {"F8_E4M3", 1},
                                                                                      {"F8_E5M2", 1},
                                                                                      {"I16", 2},
                                                                                      {"U16", 2},
                                                                                      {"F16", 2},
                                                                                      {"BF16", 2},
                                                                                      {"I32", 4},
                                                                                      {"U32", 4},
                                                                                      {"F32", 4},
                                                                                      {"I64", 8},
                                                                                      {"F64", 8}}};
  for (const auto& [name, size] : sizes)
    if (name == dtype) return size;
  return dtype == "U64" ? std::optional<std::size_t>(8) : std::nullopt;
}

std::vector<TensorView> read_safetensors(std::span<const std::byte> bytes, const std::filesystem::path& file) {
  const std::uint64_t length = read_header_length(bytes, file.string());
  const auto* text = reinterpret_cast<const char*>(bytes.data() + length_bytes);
  const json header = parse_json_text({text, length}, file, "header");
  if (!header.is_object()) throw CheckpointError(file.string() + ": header: expected a JSON object");

  const std::span<const std::byte> data = bytes.subspan(length_bytes + length);
  std::vector<TensorView> tensors;
  std::vector<std::pair<Extent, std::string>> extents;
  for (const auto& [name, entry] : header.items()) {
    if (name == "__metadata__") continue;
    Extent extent;
    tensors.push_back(read_entry(name, entry, data, file, extent));
    extents.emplace_back(extent, name);
  }
  check_tiling(std::move(extents), data.size(), file.string());
  return tensors;
}

std::size_t TensorLayout::bytes() const {
  const auto element = safetensors_dtype_size(dtype);
  if (!element) throw std::invalid_argument(quoted(name) + ": dtype " + dtype + "; expected a safetensors type");
  return *element *
         static_cast<std::size_t>(std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>()));
}

std::string safetensors_header(std::span<const TensorLayout> tensors) {
  json header = json::object();
  std::uint64_t end = 0;
  for (const TensorLayout& tensor : tensors) {
    const std::uint64_t begin = end;
    end += tensor.bytes();
    header[tensor.name] = {{"dtype", tensor.dtype}, {"shape", tensor.shape}, {"data_offsets", {begin, end}}};
  }
  std::string text = header.dump();
  text.append((length_bytes - text.size() % length_bytes) % length_bytes, ' ');
  std::string bytes;
  for (std::size_t i = 0; i < length_bytes; ++i)
    bytes.push_back(static_cast<char>((std::uint64_t{text.size()} >> (8 * i)) & 0xFF));
  return bytes + text;
}

}  // namespace replayeval
