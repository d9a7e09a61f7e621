// A whole file mapped read-only into memory.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>

namespace replayeval {

// Throws CheckpointError naming the file and the system's reason. An empty file maps to an empty span.
class MappedFile {
 public:
  explicit MappedFile(const std::filesystem::path& path);
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::span<const std::byte> bytes() const { return {data_, size_}; }

 private:
  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

// Advice to the system about a part of a mapped file. Both change nothing but speed and memory: a released page is read
// again when it is touched again.
void will_need(std::span<const std::byte> mapped);  // begin to read it from the disk now
void release(std::span<const std::byte> mapped);    // take it out of this process's memory

}  // namespace replayeval
