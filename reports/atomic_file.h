// Files that are there whole or not at all.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace replayeval::reports {

// Writes a temporary file beside `file`, flushes it to the disk and renames it into place. On failure throws
// ResultsError naming the file and the system's reason, removes the temporary file, and leaves what stood there before.
// A device, pipe or socket is refused: the rename would put a file in the place of, say, /dev/null. A link is followed.
void write_file_atomically(const std::filesystem::path& file, std::string_view bytes);

// The same for a file that is too large to stand in memory: written piece by piece, there once it is committed.
class AtomicFile {
 public:
  // `file` names what is going to be replaced; a link or a device is not looked at. Throws ResultsError as above.
  explicit AtomicFile(const std::filesystem::path& file);
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;
  ~AtomicFile();  // uncommitted: nothing stays

  void reserve(std::uint64_t bytes);  // so that a full disk shows before the work
  void write(std::string_view bytes);
  void write_at(std::uint64_t offset, std::string_view bytes);
  void commit();

 private:
  [[noreturn]] void fail(const char* what) const;
  void sync_folder() const;

  std::filesystem::path target_;
  std::string name_;
  int descriptor_ = -1;
};

}  // namespace replayeval::reports
