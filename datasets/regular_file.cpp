#include "datasets/regular_file.h"

#include <fmt/format.h>

#include <system_error>

#include "datasets/error.h"

namespace replayeval::datasets {
namespace {

const char* name_of(std::filesystem::file_type type) {
  switch (type) {
    case std::filesystem::file_type::directory:
      return "a folder";
    case std::filesystem::file_type::fifo:
      return "a pipe";
    case std::filesystem::file_type::socket:
      return "a socket";
    default:
      return "a device";
  }
}

}  // namespace

void require_regular_file(const std::filesystem::path& file, std::string_view expected) {
  std::error_code ignored;  // what cannot be looked at is not there
  const std::filesystem::file_status status = std::filesystem::status(file, ignored);
  if (!std::filesystem::exists(status) || std::filesystem::is_regular_file(status)) return;
  throw DataError(fmt::format("{}: is {}; expected {}", file.string(), name_of(status.type()), expected));
}

}  // namespace replayeval::datasets
