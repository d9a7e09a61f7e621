// Kernel benchmarks of one layer that differ in their rings alone, so that they can stand in one table.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "reports/bench_file.h"

namespace replayeval::reports {

struct KernelGroup {
  std::vector<const KernelBench*> benches;  // never empty; by ring form and storage, then by L

  const KernelBench& first() const { return *benches.front(); }
  std::vector<std::string> rings() const;  // as ring_name() says, in order
  std::vector<std::int64_t> buffer_lens(const std::string& ring) const;
  bool any_mixed() const;
};

// A group a family, device, shape of layer, route and flush, in the order of the files. What measures the same once
// more begins another. They point into `files`.
std::vector<KernelGroup> kernel_groups(const std::vector<BenchFile>& files);

// "bfloat16 ring of deltas"
std::string ring_name(const KernelBench& bench);
// "Kernels: mamba2, L = 4, 8, 16, float32 ring of inputs; NVIDIA H200"; with route and flush where they are not the
// usual ones.
std::string heading_of(const KernelGroup& group);

}  // namespace replayeval::reports
