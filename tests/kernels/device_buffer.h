// Memory on the device under test, so that one test source serves the CPU and CUDA.
#pragma once

#include "kernels/types.h"

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace replayeval::testing {

using Bytes = std::vector<std::byte>;

// Empty when tests can run on `kind`, else why not.
std::string why_unavailable(DeviceKind kind);

void synchronize(DeviceKind kind);

// Starts poisoned: every byte 0xFF, which is NaN in each float type and -1 in integers.
class DeviceBuffer {
 public:
  DeviceBuffer(DeviceKind kind, std::size_t bytes);

  void poison();
  void upload(std::span<const std::byte> bytes, std::size_t offset = 0);
  Bytes download() const;
  Bytes download(std::size_t offset, std::size_t bytes) const;

  template <class T>
  void upload_values(const std::vector<T>& values) {
    upload(std::as_bytes(std::span(values)));
  }
  template <class T = void>
  T* data() {
    return static_cast<T*>(memory_.get());
  }
  std::size_t size() const { return bytes_; }

 private:
  DeviceKind kind_;
  std::size_t bytes_;
  std::unique_ptr<void, void (*)(void*)> memory_;
};

// Float values as stored elements of `dtype`, and back.
Bytes encode_all(const std::vector<float>& values, Dtype dtype);
std::vector<float> decode_all(std::span<const std::byte> bytes, Dtype dtype);

}  // namespace replayeval::testing
