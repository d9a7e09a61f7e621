#include "eval/npy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>

#include "tests/temporary_folder.h"

namespace replayeval {
namespace {

using ::testing::HasSubstr;

std::string bytes_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(Npy, DoublesComeBack) {
  const TemporaryFolder folder;
  const std::vector<double> values = {1.0 / 3, -0.0, 1e-300, 4, 5, 6};
  write_npy(folder.path() / "a.npy", {2, 3}, std::span<const double>(values));
  const DoubleArray read = read_npy_double(folder.path() / "a.npy");
  EXPECT_EQ(read.shape, (std::vector<std::int64_t>{2, 3}));
  EXPECT_EQ(read.values, values);
}

// The layout that the format's documentation gives: magic, version, header length, header, data at a multiple of 64.
TEST(Npy, HeaderIsTheFormats) {
  const TemporaryFolder folder;
  const std::vector<float> values = {1, 2, 3};
  write_npy(folder.path() / "a.npy", {3}, std::span<const float>(values));
  const std::string bytes = bytes_of(folder.path() / "a.npy");
  EXPECT_EQ(bytes.substr(0, 8), std::string("\x93NUMPY\x01\x00", 8));
  EXPECT_EQ((bytes.size() - 12) % 64, 0U);
  EXPECT_THAT(bytes, HasSubstr("'descr': '<f4'"));
  EXPECT_THAT(bytes, HasSubstr("'shape': (3, )"));
  EXPECT_EQ(bytes[bytes.size() - 13], '\n');
}

TEST(Npy, ShapeAndValuesMustAgree) {
  const TemporaryFolder folder;
  const std::vector<float> values = {1, 2, 3};
  EXPECT_THROW(write_npy(folder.path() / "a.npy", {2, 2}, std::span<const float>(values)), std::invalid_argument);
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "a.npy"));
}

std::string read_failure(const std::filesystem::path& path) {
  try {
    read_npy_double(path);
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "";
}

TEST(Npy, DamageIsNamed) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "a.npy";
  EXPECT_THAT(read_failure(path), HasSubstr("a.npy: cannot be read"));
  EXPECT_THAT(read_failure(folder.path()), HasSubstr(folder.path().string() + ": is a folder; expected a .npy file"));
  std::ofstream(path) << "hello";
  EXPECT_THAT(read_failure(path), HasSubstr("not a version 1.0 .npy file"));
  const std::vector<float> floats = {1};
  write_npy(path, {1}, std::span<const float>(floats));
  EXPECT_THAT(read_failure(path), HasSubstr("expected a float64 array"));
  const std::vector<double> doubles = {1, 2};
  write_npy(path, {2}, std::span<const double>(doubles));
  std::filesystem::resize_file(path, std::filesystem::file_size(path) - 1);
  EXPECT_THAT(read_failure(path), HasSubstr("promises 16 bytes of data, 15 follow"));
}

}  // namespace
}  // namespace replayeval
