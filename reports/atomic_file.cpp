#include "reports/atomic_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>

#include "reports/results_io.h"

namespace replayeval::reports {
AtomicFile::AtomicFile(const std::filesystem::path& file) : target_(file) {
  name_ = file.string() + ".XXXXXX";
  descriptor_ = ::mkostemp(name_.data(), O_CLOEXEC);
  if (descriptor_ < 0) {
    name_.clear();
    fail("cannot be written");
  }
}

AtomicFile::~AtomicFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
  if (!name_.empty()) ::unlink(name_.c_str());
}

void AtomicFile::reserve(std::uint64_t bytes) {
  const int error = ::posix_fallocate(descriptor_, 0, static_cast<off_t>(bytes));
  if (error == 0 || error == EINVAL || error == EOPNOTSUPP) return;  // not every file system can
  errno = error;
  fail("cannot be written");
}

void AtomicFile::write(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(descriptor_, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail("cannot be written");
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
}

void AtomicFile::write_at(std::uint64_t offset, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::pwrite(descriptor_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail("cannot be written");
    bytes.remove_prefix(static_cast<std::size_t>(count));
    offset += static_cast<std::uint64_t>(count);
  }
}

void AtomicFile::commit() {
  const mode_t mask = ::umask(0);  // mkostemp makes files for the owner alone; give what open() would have
  ::umask(mask);
  if (::fchmod(descriptor_, 0666 & ~mask) != 0 || ::fsync(descriptor_) != 0) fail("cannot be flushed to the disk");
  const int closed = ::close(descriptor_);
  descriptor_ = -1;
  if (closed != 0) fail("cannot be closed");
  if (::rename(name_.c_str(), target_.c_str()) != 0) fail("cannot be put in its place");
  name_.clear();
  sync_folder();
}

void AtomicFile::fail(const char* what) const {
  throw ResultsError(target_.string() + ": " + what + ": " + std::strerror(errno));
}

// So that the rename survives a crash, too. Not every file system can, which is no fault of the file.
void AtomicFile::sync_folder() const {
  const std::filesystem::path folder = target_.has_parent_path() ? target_.parent_path() : ".";
  const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return;
  ::fsync(descriptor);
  ::close(descriptor);
}

void write_file_atomically(const std::filesystem::path& file, std::string_view bytes) {
  if (!file.has_filename()) throw ResultsError("'" + file.string() + "': expected the name of a file to write");
  std::error_code ignored;
  if (std::filesystem::is_symlink(file, ignored)) {  // the link stays, what it points at is replaced
    const std::filesystem::path target = std::filesystem::canonical(file, ignored);
    if (ignored) throw ResultsError(file.string() + ": a link to nowhere: " + ignored.message());
    write_file_atomically(target, bytes);
    return;
  }
  const std::filesystem::file_status there = std::filesystem::status(file, ignored);
  if (std::filesystem::exists(there) && !std::filesystem::is_regular_file(there) &&
      !std::filesystem::is_directory(there)) {
    throw ResultsError(file.string() + ": is a device, pipe or socket, which a finished file would replace; " +
                       "expected a regular file or none");
  }
  AtomicFile temporary(file);
  temporary.write(bytes);
  temporary.commit();
}

}  // namespace replayeval::reports
