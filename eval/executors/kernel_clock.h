// Where the time goes: seconds by (arm, kernel), wall clock on the CPU, events on CUDA.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "kernels/types.h"

namespace replayeval {

struct KernelSeconds {
  std::string arm;     // "" for work shared by all arms
  std::string kernel;  // mamba2, conv, gated_norm, attention, dense, norm, embedding, head, ...
  std::int64_t calls = 0;
  double seconds = 0.0;
};

class KernelClock {
 public:
  explicit KernelClock(DeviceKind device);
  ~KernelClock();

  // Times from construction to destruction. A null clock is allowed and costs nothing.
  class Scope {
   public:
    Scope(KernelClock* clock, const std::string& arm, const std::string& kernel);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    KernelClock* clock_;
  };

  std::vector<KernelSeconds> totals();  // waits for the device

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace replayeval
