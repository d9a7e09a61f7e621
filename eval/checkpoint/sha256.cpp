#include "eval/checkpoint/sha256.h"

#include <openssl/evp.h>

#include <array>
#include <stdexcept>

namespace replayeval {

struct Sha256::Impl {
  std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context{EVP_MD_CTX_new(), &EVP_MD_CTX_free};
};

Sha256::Sha256() : impl_(std::make_unique<Impl>()) {
  if (impl_->context == nullptr || EVP_DigestInit_ex(impl_->context.get(), EVP_sha256(), nullptr) != 1)
    throw std::runtime_error("SHA-256: libcrypto cannot start a digest");
}

Sha256::~Sha256() = default;

void Sha256::add(std::span<const std::byte> bytes) {
  if (EVP_DigestUpdate(impl_->context.get(), bytes.data(), bytes.size()) != 1)
    throw std::runtime_error("SHA-256: libcrypto cannot add to a digest");
}

std::string Sha256::hex() {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int size = 0;
  if (EVP_DigestFinal_ex(impl_->context.get(), digest.data(), &size) != 1)
    throw std::runtime_error("SHA-256: libcrypto cannot finish a digest");
  static constexpr char digits[] = "0123456789abcdef";
  std::string text;
  for (unsigned int i = 0; i < size; ++i) {
    text += digits[digest[i] >> 4];
    text += digits[digest[i] & 15];
  }
  return text;
}

}  // namespace replayeval
