// What the kernel bench needs of a device: memory, and the time of a sequence of calls.
#pragma once

#include "kernels/types.h"

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace replayeval::bench {

// Of one run of the sequence, in microseconds.
struct Timing {
  double median = 0.0;
  double min = 0.0;
  double max = 0.0;
};

class BenchDevice {
 public:
  virtual ~BenchDevice() = default;

  virtual std::string name() const = 0;
  virtual Device device() const = 0;  // to hand to the kernels
  // Zeroed memory that lives as long as this object or until release(). Throws std::runtime_error when there is none
  // left.
  virtual void* allocate(std::size_t bytes) = 0;
  virtual void release() = 0;  // frees all of it
  virtual void upload(void* to, const void* from, std::size_t bytes) = 0;
  virtual void download(void* to, const void* from, std::size_t bytes) = 0;  // waits for the kernels before it
  virtual void copy(void* to, const void* from, std::size_t bytes) = 0;      // within the device
  // Runs `calls` until the clocks are up (at least 30 ms), then `repeats` times under the clock.
  virtual Timing time(const std::function<void()>& calls, int repeats) = 0;
  // Bytes a second of plain reads over a buffer far larger than the caches.
  virtual double read_bandwidth() = 0;
};

std::unique_ptr<BenchDevice> make_cpu_device();
std::unique_ptr<BenchDevice> make_cuda_device();  // throws std::runtime_error without a GPU or in a build without CUDA

Timing summarize(std::vector<double> microseconds);

}  // namespace replayeval::bench
