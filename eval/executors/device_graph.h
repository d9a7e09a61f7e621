// Work that the device is told once and does again as a whole: a CUDA graph, and events inside it.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>

namespace replayeval {

// Notes what `work` launches on `device`, the current one, instead of running it. The graph holds addresses: whatever
// the work reads and writes must stay where it is; tensors that the work makes live in memory of the graph's own and
// are overwritten by each replay. Not for two threads at once.
class DeviceGraph {
 public:
  // Throws std::runtime_error where the work asks for something that cannot be noted (a copy to the host, say);
  // nothing has run then. Throws the same in a build without CUDA.
  DeviceGraph(const at::Device& device, const std::function<void()>& work);
  ~DeviceGraph();
  DeviceGraph(const DeviceGraph&) = delete;
  DeviceGraph& operator=(const DeviceGraph&) = delete;

  void replay() const;  // behind what the current stream has been told

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// A point of time inside a graph, another at each replay.
class GraphEvent {
 public:
  GraphEvent();  // records here; only while a graph is made
  ~GraphEvent();
  GraphEvent(GraphEvent&& other) noexcept;
  GraphEvent& operator=(GraphEvent&&) = delete;
  GraphEvent(const GraphEvent&) = delete;
  GraphEvent& operator=(const GraphEvent&) = delete;

  // Of the latest replay, for which it waits.
  double seconds_until(const GraphEvent& later) const;

 private:
  void* event_ = nullptr;
};

}  // namespace replayeval
