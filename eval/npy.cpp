#include "eval/npy.h"

#include <bit>
#include <cstring>
#include <fstream>
#include <numeric>
#include <regex>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>

#include "reports/atomic_file.h"

namespace replayeval {
namespace {

static_assert(std::endian::native == std::endian::little, "the .npy descriptors below are little-endian");

constexpr std::string_view magic("\x93NUMPY\x01\x00", 8);
constexpr std::size_t alignment = 64;  // the format asks that the data start at a multiple of 64

std::string header(std::string_view descriptor, const std::vector<std::int64_t>& shape) {
  std::ostringstream dictionary;
  dictionary << "{'descr': '" << descriptor << "', 'fortran_order': False, 'shape': (";
  for (const std::int64_t extent : shape) dictionary << extent << ", ";
  dictionary << "), }";
  std::string text = dictionary.str();
  const std::size_t used = magic.size() + 2 + text.size() + 1;
  text.append((alignment - used % alignment) % alignment, ' ');
  text.push_back('\n');
  const auto length = static_cast<std::uint16_t>(text.size());
  std::string bytes(magic);
  bytes.push_back(static_cast<char>(length & 0xFF));
  bytes.push_back(static_cast<char>(length >> 8));
  return bytes + text;
}

std::int64_t element_count(const std::vector<std::int64_t>& shape) {
  return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
}

template <typename T>
void write_array(const std::filesystem::path& path, std::string_view descriptor, const std::vector<std::int64_t>& shape,
                 std::span<const T> values) {
  if (element_count(shape) != static_cast<std::int64_t>(values.size())) {
    throw std::invalid_argument(path.string() + ": the shape holds " + std::to_string(element_count(shape)) +
                                " values, " + std::to_string(values.size()) + " were given");
  }
  std::string bytes = header(descriptor, shape);
  bytes.append(reinterpret_cast<const char*>(values.data()), values.size_bytes());
  reports::write_file_atomically(path, bytes);
}

std::vector<std::int64_t> parse_shape(const std::string& text) {
  std::vector<std::int64_t> shape;
  std::istringstream stream(text);
  for (std::string item; std::getline(stream, item, ',');) {
    if (item.find_first_not_of(' ') != std::string::npos) shape.push_back(std::stoll(item));
  }
  return shape;
}

}  // namespace

void write_npy(const std::filesystem::path& path, const std::vector<std::int64_t>& shape,
               std::span<const float> values) {
  write_array(path, "<f4", shape, values);
}

void write_npy(const std::filesystem::path& path, const std::vector<std::int64_t>& shape,
               std::span<const double> values) {
  write_array(path, "<f8", shape, values);
}

void write_npy(const std::filesystem::path& path, const std::vector<std::int64_t>& shape,
               std::span<const std::int64_t> values) {
  write_array(path, "<i8", shape, values);
}

DoubleArray read_npy_double(const std::filesystem::path& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored))
    throw std::runtime_error(path.string() + ": is a folder; expected a .npy file");
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error(path.string() + ": cannot be read");
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  if (bytes.size() < magic.size() + 2 || bytes.compare(0, magic.size(), magic) != 0) {
    throw std::runtime_error(path.string() + ": not a version 1.0 .npy file");
  }
  const auto low = static_cast<unsigned char>(bytes[magic.size()]);
  const auto high = static_cast<unsigned char>(bytes[magic.size() + 1]);
  const std::size_t data_begin = magic.size() + 2 + low + 256U * high;
  if (bytes.size() < data_begin) throw std::runtime_error(path.string() + ": the header is cut off");
  const std::string dictionary = bytes.substr(magic.size() + 2, data_begin - magic.size() - 2);
  static const std::regex form(R"(\{'descr': '<f8', 'fortran_order': False, 'shape': \(([0-9, ]*)\), \}\s*)");
  std::smatch match;
  if (!std::regex_match(dictionary, match, form)) {
    throw std::runtime_error(path.string() + ": expected a float64 array in C order, found " + dictionary);
  }
  DoubleArray array{parse_shape(match[1].str()), {}};
  const std::size_t expected = static_cast<std::size_t>(element_count(array.shape)) * sizeof(double);
  if (bytes.size() - data_begin != expected) {
    throw std::runtime_error(path.string() + ": the header promises " + std::to_string(expected) + " bytes of data, " +
                             std::to_string(bytes.size() - data_begin) + " follow");
  }
  array.values.resize(expected / sizeof(double));
  std::memcpy(array.values.data(), bytes.data() + data_begin, expected);
  return array;
}

}  // namespace replayeval
