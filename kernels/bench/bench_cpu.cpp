#include "kernels/bench/bench_device.h"

#include <omp.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>
#include <stdexcept>

namespace replayeval::bench {
namespace {

using Clock = std::chrono::steady_clock;
constexpr double kWarmMicroseconds = 30e3;

double microseconds_of(const std::function<void()>& calls) {
  const Clock::time_point start = Clock::now();
  calls();
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}

struct Free {
  void operator()(void* memory) const { std::free(memory); }
};

class CpuDevice : public BenchDevice {
 public:
  std::string name() const override { return "CPU, " + std::to_string(omp_get_max_threads()) + " threads"; }
  Device device() const override { return {DeviceKind::cpu, nullptr}; }

  void* allocate(std::size_t bytes) override {
    constexpr std::size_t kAlignment = 4096;
    void* memory = std::aligned_alloc(kAlignment, (bytes + kAlignment - 1) / kAlignment * kAlignment);
    if (memory == nullptr) throw std::runtime_error("no memory for " + std::to_string(bytes) + " bytes");
    std::memset(memory, 0, bytes);
    memory_.emplace_back(memory);
    return memory;
  }
  void release() override { memory_.clear(); }
  void upload(void* to, const void* from, std::size_t bytes) override { std::memcpy(to, from, bytes); }
  void download(void* to, const void* from, std::size_t bytes) override { std::memcpy(to, from, bytes); }
  void copy(void* to, const void* from, std::size_t bytes) override { std::memcpy(to, from, bytes); }

  Timing time(const std::function<void()>& calls, int repeats) override {
    for (double spent = 0.0; spent < kWarmMicroseconds;) spent += microseconds_of(calls);
    std::vector<double> times(static_cast<std::size_t>(repeats));
    for (double& microseconds : times) microseconds = microseconds_of(calls);
    return summarize(times);
  }

  double read_bandwidth() override {
    const std::vector<std::uint64_t> values(std::size_t{1} << 26, 1);  // 512 MiB
    const std::uint64_t* data = values.data();
    const std::size_t count = values.size();
    std::uint64_t sum = 0;
    const Timing timing = time(
        [&] {
          std::uint64_t part = 0;
#pragma omp parallel for simd reduction(+ : part) schedule(static)
          for (std::size_t i = 0; i < count; ++i) part += data[i];
          sum += part;
        },
        5);
    if (sum == 0) throw std::runtime_error("the bandwidth probe read nothing");
    return static_cast<double>(values.size() * sizeof(std::uint64_t)) / timing.median * 1e6;
  }

 private:
  std::vector<std::unique_ptr<void, Free>> memory_;
};

}  // namespace

Timing summarize(std::vector<double> microseconds) {
  std::sort(microseconds.begin(), microseconds.end());
  return {microseconds.at(microseconds.size() / 2), microseconds.front(), microseconds.back()};
}

std::unique_ptr<BenchDevice> make_cpu_device() { return std::make_unique<CpuDevice>(); }

#ifndef REPLAYEVAL_WITH_CUDA
std::unique_ptr<BenchDevice> make_cuda_device() { throw std::runtime_error("this program was built without CUDA"); }
#endif

}  // namespace replayeval::bench
