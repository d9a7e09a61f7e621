#include "datasets/sha256.h"

#include <openssl/evp.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <stdexcept>
#include <vector>

#include "datasets/error.h"

namespace replayeval::datasets {

struct Sha256::Impl {
  EVP_MD_CTX* context = EVP_MD_CTX_new();
  Impl() {
    if (context == nullptr || EVP_DigestInit_ex(context, EVP_sha256(), nullptr) != 1) {
      EVP_MD_CTX_free(context);
      throw std::runtime_error("OpenSSL offers no SHA-256");
    }
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;
  ~Impl() { EVP_MD_CTX_free(context); }
};

Sha256::Sha256() : impl_(std::make_unique<Impl>()) {}
Sha256::~Sha256() = default;
Sha256::Sha256(Sha256&&) noexcept = default;
Sha256& Sha256::operator=(Sha256&&) noexcept = default;

void Sha256::update(std::span<const std::byte> bytes) {
  if (EVP_DigestUpdate(impl_->context, bytes.data(), bytes.size()) != 1) {
    throw std::runtime_error("SHA-256: OpenSSL refused an update");
  }
}

void Sha256::update(std::string_view bytes) { update(std::as_bytes(std::span(bytes))); }

std::string Sha256::hex() {
  std::array<unsigned char, 32> digest{};
  unsigned int size = 0;
  if (EVP_DigestFinal_ex(impl_->context, digest.data(), &size) != 1 || size != digest.size()) {
    throw std::runtime_error("SHA-256: OpenSSL refused to finish");
  }
  constexpr const char* digits = "0123456789abcdef";
  std::string text;
  text.reserve(2 * digest.size());
  for (const unsigned char byte : digest) {
    text += digits[byte >> 4];
    text += digits[byte & 15];
  }
  return text;
}

std::string sha256_hex(std::string_view bytes) {
  Sha256 hash;
  hash.update(bytes);
  return hash.hex();
}

std::string sha256_file(const std::filesystem::path& file) {
  std::error_code ignored;
  if (std::filesystem::is_directory(file, ignored)) throw DataError(file.string() + ": is a folder; expected a file");
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> stream(std::fopen(file.c_str(), "rb"), &std::fclose);
  if (!stream) {
    throw DataError(file.string() + ": cannot be opened: " + std::strerror(errno));
  }
  Sha256 hash;
  std::vector<std::byte> buffer(1 << 20);
  while (const std::size_t count = std::fread(buffer.data(), 1, buffer.size(), stream.get())) {
    hash.update(std::span(buffer).first(count));
  }
  if (std::ferror(stream.get()) != 0) {
    throw DataError(file.string() + ": cannot be read: " + std::strerror(errno));
  }
  return hash.hex();
}

}  // namespace replayeval::datasets
