#include "tests/kernels/device_buffer.h"

#include "kernels/storage_scalar.h"

#ifdef REPLAYEVAL_WITH_CUDA
#include <cuda_runtime.h>
#endif

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <stdexcept>

namespace replayeval::testing {
namespace {

constexpr std::size_t kAlignment = 256;

#ifdef REPLAYEVAL_WITH_CUDA
void expect_success(cudaError_t status, const char* what) {
  if (status != cudaSuccess) throw std::runtime_error(std::string(what) + ": " + cudaGetErrorString(status));
}

void free_on_gpu(void* memory) { static_cast<void>(cudaFree(memory)); }
#endif

void free_on_host(void* memory) { std::free(memory); }

std::unique_ptr<void, void (*)(void*)> allocate(DeviceKind kind, std::size_t bytes) {
#ifdef REPLAYEVAL_WITH_CUDA
  if (kind == DeviceKind::cuda) {
    void* memory = nullptr;
    expect_success(cudaMalloc(&memory, bytes), "cudaMalloc");
    return {memory, free_on_gpu};
  }
#endif
  if (kind != DeviceKind::cpu) throw std::runtime_error("no such device in this build");
  void* memory = std::aligned_alloc(kAlignment, (bytes + kAlignment - 1) / kAlignment * kAlignment);
  if (memory == nullptr) throw std::bad_alloc();
  return {memory, free_on_host};
}

}  // namespace

std::string why_unavailable(DeviceKind kind) {
  if (kind == DeviceKind::cpu) return "";
#ifdef REPLAYEVAL_WITH_CUDA
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  if (status != cudaSuccess) return std::string("no usable GPU: ") + cudaGetErrorString(status);
  return count > 0 ? "" : "no GPU on this machine";
#else
  return "built without CUDA";
#endif
}

void synchronize([[maybe_unused]] DeviceKind kind) {
#ifdef REPLAYEVAL_WITH_CUDA
  if (kind == DeviceKind::cuda) expect_success(cudaDeviceSynchronize(), "a kernel failed");
#endif
}

DeviceBuffer::DeviceBuffer(DeviceKind kind, std::size_t bytes)
    : kind_(kind), bytes_(bytes), memory_(allocate(kind, bytes)) {
  poison();
}

void DeviceBuffer::poison() {
#ifdef REPLAYEVAL_WITH_CUDA
  if (kind_ == DeviceKind::cuda) {
    expect_success(cudaMemset(memory_.get(), 0xFF, bytes_), "cudaMemset");
    return;
  }
#endif
  std::memset(memory_.get(), 0xFF, bytes_);
}

void DeviceBuffer::upload(std::span<const std::byte> bytes, std::size_t offset) {
  if (offset + bytes.size() > bytes_) throw std::out_of_range("upload past the buffer's end");
  if (bytes.empty()) return;
  std::byte* target = static_cast<std::byte*>(memory_.get()) + offset;
#ifdef REPLAYEVAL_WITH_CUDA
  if (kind_ == DeviceKind::cuda) {
    expect_success(cudaMemcpy(target, bytes.data(), bytes.size(), cudaMemcpyHostToDevice), "upload");
    return;
  }
#endif
  std::memcpy(target, bytes.data(), bytes.size());
}

Bytes DeviceBuffer::download() const { return download(0, bytes_); }

Bytes DeviceBuffer::download(std::size_t offset, std::size_t bytes) const {
  if (offset + bytes > bytes_) throw std::out_of_range("download past the buffer's end");
  Bytes result(bytes);
  if (result.empty()) return result;
  const std::byte* source = static_cast<const std::byte*>(memory_.get()) + offset;
#ifdef REPLAYEVAL_WITH_CUDA
  if (kind_ == DeviceKind::cuda) {
    expect_success(cudaMemcpy(result.data(), source, bytes, cudaMemcpyDeviceToHost), "download");
    return result;
  }
#endif
  std::copy_n(source, bytes, result.data());  // unlike memcpy, fine with no bytes at no address
  return result;
}

Bytes encode_all(const std::vector<float>& values, Dtype dtype) {
  Bytes bytes(values.size() * dtype_size(dtype));
  for (std::size_t i = 0; i < values.size(); ++i)
    storage::store(bytes.data(), i, values[i], {dtype, Overflow::infinity});
  return bytes;
}

std::vector<float> decode_all(std::span<const std::byte> bytes, Dtype dtype) {
  std::vector<float> values(bytes.size() / dtype_size(dtype));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = storage::load(bytes.data(), i, dtype);
  return values;
}

}  // namespace replayeval::testing
