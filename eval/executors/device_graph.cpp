#include "eval/executors/device_graph.h"

#include <stdexcept>
#include <string>
#include <utility>

#ifdef REPLAYEVAL_WITH_CUDA
#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda_runtime_api.h>
#endif

namespace replayeval {

#ifdef REPLAYEVAL_WITH_CUDA

namespace {

// One a device, so that the libraries' workspaces of captured products are made once.
c10::cuda::CUDAStream capture_stream(const at::Device& device) {
  static std::vector<std::optional<c10::cuda::CUDAStream>> streams(static_cast<std::size_t>(c10::cuda::device_count()));
  auto& stream = streams.at(static_cast<std::size_t>(device.index()));
  if (!stream) stream = c10::cuda::getStreamFromPool(/*isHighPriority=*/false, device.index());
  return *stream;
}

void expect_success(cudaError_t status, const char* what) {
  if (status != cudaSuccess) throw std::runtime_error(std::string(what) + ": " + cudaGetErrorString(status));
}

cudaEvent_t event_of(void* event) { return static_cast<cudaEvent_t>(event); }

}  // namespace

struct DeviceGraph::Impl {
  at::cuda::CUDAGraph graph;
};

DeviceGraph::DeviceGraph(const at::Device& device, const std::function<void()>& work)
    : impl_(std::make_unique<Impl>()) {
  const c10::cuda::CUDAStreamGuard guard(capture_stream(device));
  try {
    impl_->graph.capture_begin({0, 0}, cudaStreamCaptureModeThreadLocal);
    work();
    impl_->graph.capture_end();
  } catch (const std::exception& error) {
    std::string why = error.what();
    why.resize(std::min(why.find('\n'), why.size()));
    try {
      impl_->graph.capture_end();
    } catch (const std::exception&) {  // says once more that the capture has failed
    }
    cudaGetLastError();  // so that the next call does not report it
    throw std::runtime_error("CUDA graph: " + why);
  }
}

DeviceGraph::~DeviceGraph() = default;

void DeviceGraph::replay() const { impl_->graph.replay(); }

GraphEvent::GraphEvent() {
  cudaEvent_t event = nullptr;
  expect_success(cudaEventCreate(&event), "cudaEventCreate");
  event_ = event;
  expect_success(cudaEventRecordWithFlags(event, c10::cuda::getCurrentCUDAStream(), cudaEventRecordExternal),
                 "cudaEventRecordWithFlags");
}

GraphEvent::~GraphEvent() {
  if (event_ != nullptr) cudaEventDestroy(event_of(event_));
}

double GraphEvent::seconds_until(const GraphEvent& later) const {
  float milliseconds = 0.0F;
  expect_success(cudaEventSynchronize(event_of(later.event_)), "cudaEventSynchronize");
  expect_success(cudaEventElapsedTime(&milliseconds, event_of(event_), event_of(later.event_)), "cudaEventElapsedTime");
  return static_cast<double>(milliseconds) / 1000.0;
}

#else

struct DeviceGraph::Impl {};

DeviceGraph::DeviceGraph(const at::Device& /*device*/, const std::function<void()>& /*work*/) {
  throw std::runtime_error("CUDA graph: this build has no CUDA");
}
DeviceGraph::~DeviceGraph() = default;
void DeviceGraph::replay() const {}

GraphEvent::GraphEvent() { throw std::runtime_error("CUDA graph: this build has no CUDA"); }
GraphEvent::~GraphEvent() = default;
double GraphEvent::seconds_until(const GraphEvent& /*later*/) const { return 0.0; }

#endif

GraphEvent::GraphEvent(GraphEvent&& other) noexcept : event_(std::exchange(other.event_, nullptr)) {}

}  // namespace replayeval
