#include "kernels/bench/bench_device.h"

#include <cuda_runtime.h>

#include <chrono>
#include <stdexcept>

namespace replayeval::bench {
namespace {

void expect_success(cudaError_t status, const char* what) {
  if (status != cudaSuccess) throw std::runtime_error(std::string(what) + ": " + cudaGetErrorString(status));
}

__global__ void read_kernel(const uint4* values, std::size_t count, unsigned* sink) {
  const std::size_t stride = static_cast<std::size_t>(gridDim.x) * blockDim.x;
  unsigned mixed = 0;
#pragma unroll 8
  for (std::size_t i = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += stride) {
    const uint4 v = values[i];
    mixed ^= v.x ^ v.y ^ v.z ^ v.w;
  }
  if (mixed == 0x9E3779B9U) *sink = mixed;  // never for zeros; keeps the reads
}

// A captured sequence of calls, replayed as one graph.
class Graph {
 public:
  Graph(cudaStream_t stream, const std::function<void()>& calls) {
    cudaGraph_t graph = nullptr;
    expect_success(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "graph capture");
    calls();
    expect_success(cudaStreamEndCapture(stream, &graph), "graph capture");
    const cudaError_t status = cudaGraphInstantiate(&executable_, graph, 0);
    cudaGraphDestroy(graph);
    expect_success(status, "graph instantiation");
  }
  ~Graph() { cudaGraphExecDestroy(executable_); }
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;
  void launch(cudaStream_t stream) const { expect_success(cudaGraphLaunch(executable_, stream), "graph launch"); }

 private:
  cudaGraphExec_t executable_ = nullptr;
};

class CudaDevice : public BenchDevice {
 public:
  CudaDevice() {
    int count = 0;
    const cudaError_t found = cudaGetDeviceCount(&count);
    if (found != cudaSuccess || count == 0)
      throw std::runtime_error(std::string("no usable GPU (") +
                               (found == cudaSuccess ? "none is there" : cudaGetErrorString(found)) +
                               "); expected one, or --device cpu");
    expect_success(cudaGetDeviceProperties(&properties_, 0), "reading the GPU's properties");
    expect_success(cudaStreamCreate(&stream_), "cudaStreamCreate");
    expect_success(cudaEventCreate(&start_), "cudaEventCreate");
    expect_success(cudaEventCreate(&stop_), "cudaEventCreate");
  }
  ~CudaDevice() override {
    free_all();
    cudaEventDestroy(start_);
    cudaEventDestroy(stop_);
    cudaStreamDestroy(stream_);
  }

  std::string name() const override { return properties_.name; }
  Device device() const override { return {DeviceKind::cuda, stream_}; }

  void* allocate(std::size_t bytes) override {
    void* memory = nullptr;
    expect_success(cudaMalloc(&memory, bytes), "cudaMalloc");
    memory_.push_back(memory);
    expect_success(cudaMemset(memory, 0, bytes), "cudaMemset");
    return memory;
  }
  void release() override { free_all(); }
  void upload(void* to, const void* from, std::size_t bytes) override {
    expect_success(cudaMemcpy(to, from, bytes, cudaMemcpyHostToDevice), "upload");
  }
  void download(void* to, const void* from, std::size_t bytes) override {
    expect_success(cudaStreamSynchronize(stream_), "a kernel failed");
    expect_success(cudaMemcpy(to, from, bytes, cudaMemcpyDeviceToHost), "download");
  }
  void copy(void* to, const void* from, std::size_t bytes) override {
    expect_success(cudaMemcpy(to, from, bytes, cudaMemcpyDeviceToDevice), "copy");
  }

  Timing time(const std::function<void()>& calls, int repeats) override {
    calls();
    expect_success(cudaStreamSynchronize(stream_), "a kernel failed");
    const Graph graph(stream_, calls);
    const auto warm_until = std::chrono::steady_clock::now() + std::chrono::milliseconds(30);
    do {
      graph.launch(stream_);
      expect_success(cudaStreamSynchronize(stream_), "a kernel failed");
    } while (std::chrono::steady_clock::now() < warm_until);
    std::vector<double> times;
    for (int i = 0; i < repeats; ++i) {
      float milliseconds = 0.0F;
      expect_success(cudaEventRecord(start_, stream_), "cudaEventRecord");
      graph.launch(stream_);
      expect_success(cudaEventRecord(stop_, stream_), "cudaEventRecord");
      expect_success(cudaEventSynchronize(stop_), "a kernel failed");
      expect_success(cudaEventElapsedTime(&milliseconds, start_, stop_), "cudaEventElapsedTime");
      times.push_back(1e3 * static_cast<double>(milliseconds));
    }
    return summarize(times);
  }

  double read_bandwidth() override {
    constexpr std::size_t kBytes = std::size_t{1} << 31;
    const auto* values = static_cast<const uint4*>(allocate(kBytes));
    auto* sink = static_cast<unsigned*>(allocate(sizeof(unsigned)));
    const unsigned blocks = 8U * static_cast<unsigned>(properties_.multiProcessorCount);
    const Timing timing =
        time([&] { read_kernel<<<blocks, 256, 0, stream_>>>(values, kBytes / sizeof(uint4), sink); }, 10);
    free_all();
    return static_cast<double>(kBytes) / timing.median * 1e6;
  }

 private:
  void free_all() {
    for (void* memory : memory_) cudaFree(memory);
    memory_.clear();
  }

  cudaDeviceProp properties_{};
  cudaStream_t stream_ = nullptr;
  cudaEvent_t start_ = nullptr, stop_ = nullptr;
  std::vector<void*> memory_;
};

}  // namespace

std::unique_ptr<BenchDevice> make_cuda_device() { return std::make_unique<CudaDevice>(); }

}  // namespace replayeval::bench
