// SHA-256 (FIPS 180-4, through OpenSSL), as results name files by content.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace replayeval::datasets {

// Feed any number of pieces, then ask for the digest once.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(Sha256&&) noexcept;
  Sha256& operator=(Sha256&&) noexcept;

  void update(std::span<const std::byte> bytes);
  void update(std::string_view bytes);
  std::string hex();  // 64 lower-case digits; ends the computation

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

std::string sha256_hex(std::string_view bytes);
// Of the file's bytes as they lie on the disk. Throws DataError naming the file if it cannot be read.
std::string sha256_file(const std::filesystem::path& file);

}  // namespace replayeval::datasets
