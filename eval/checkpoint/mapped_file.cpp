#include "eval/checkpoint/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>

#include "eval/checkpoint/checkpoint.h"

namespace replayeval {
namespace {

[[noreturn]] void fail(const std::filesystem::path& path, const char* what, int error) {
  throw CheckpointError(path.string() + ": " + what + ": " + std::strerror(error));
}

// Whole pages that hold `mapped`: advice on less is refused.
void advise(std::span<const std::byte> mapped, int advice) {
  if (mapped.empty()) return;
  static const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<std::uintptr_t>(mapped.data()) / page * page;
  const auto end = reinterpret_cast<std::uintptr_t>(mapped.data() + mapped.size());
  ::madvise(reinterpret_cast<void*>(begin), end - begin, advice);  // NOLINT(performance-no-int-to-ptr)
}

}  // namespace

void will_need(std::span<const std::byte> mapped) { advise(mapped, MADV_WILLNEED); }

void release(std::span<const std::byte> mapped) { advise(mapped, MADV_DONTNEED); }

MappedFile::MappedFile(const std::filesystem::path& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) fail(path, "cannot be opened", errno);
  struct stat status {};
  if (::fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) {
    const int error = errno;
    const bool regular = S_ISREG(status.st_mode);
    ::close(fd);
    if (!regular)
      throw CheckpointError(path.string() + ": not a regular file; expected one, no folder, pipe or device");
    fail(path, "cannot be read", error);
  }
  size_ = static_cast<std::size_t>(status.st_size);
  if (size_ != 0) {
    void* mapped = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, fd, 0);
    const int error = errno;
    if (mapped == MAP_FAILED) {
      ::close(fd);
      fail(path, "cannot be mapped into memory", error);
    }
    data_ = static_cast<const std::byte*>(mapped);
  }
  ::close(fd);  // the mapping outlives the descriptor
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

}  // namespace replayeval
