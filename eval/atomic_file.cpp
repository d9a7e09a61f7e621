#include "eval/atomic_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <string>

namespace replayeval {
namespace {

[[noreturn]] void fail(const std::filesystem::path& path, const std::filesystem::path& temporary, int error) {
  ::unlink(temporary.c_str());
  throw std::runtime_error(path.string() + ": cannot be written: " + std::strerror(error));
}

void write_all(int descriptor, std::string_view bytes, const std::filesystem::path& path,
               const std::filesystem::path& temporary) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) {
      const int error = errno;
      ::close(descriptor);
      fail(path, temporary, error);
    }
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
}

}  // namespace

void write_file_atomically(const std::filesystem::path& path, std::string_view bytes) {
  const std::filesystem::path temporary = path.string() + ".part";
  const int descriptor = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (descriptor < 0) throw std::runtime_error(path.string() + ": cannot be written: " + std::strerror(errno));
  write_all(descriptor, bytes, path, temporary);
  if (::fsync(descriptor) != 0) {
    const int error = errno;
    ::close(descriptor);
    fail(path, temporary, error);
  }
  if (::close(descriptor) != 0) fail(path, temporary, errno);  // a full disk may only show here
  if (::rename(temporary.c_str(), path.c_str()) != 0) fail(path, temporary, errno);
}

}  // namespace replayeval
