// Hands a call whose arguments have been checked to its device's implementation: a family's functions of the same name
// in its namespaces cpu and cuda.
#pragma once

#include "kernels/types.h"

namespace replayeval {

// A cuda device comes this far only where the CUDA kernels are in the build.
template <class OnCpu, class OnCuda>
void run_on(const Device& device, const OnCpu& on_cpu, [[maybe_unused]] const OnCuda& on_cuda) {
#ifdef REPLAYEVAL_WITH_CUDA
  if (device.kind == DeviceKind::cuda) return on_cuda();
#endif
  if (device.kind == DeviceKind::cpu) on_cpu();
}

#ifdef REPLAYEVAL_WITH_CUDA
#define REPLAYEVAL_ON_CUDA(call) [&] { cuda::call; }
#else
#define REPLAYEVAL_ON_CUDA(call) [] {}
#endif

}  // namespace replayeval
