// From a checkpoint's tensors to those of a model: shape and value checks, conversion, one copy to the device.
#pragma once

#include <ATen/core/Tensor.h>

#include <set>
#include <string>
#include <vector>

#include "eval/checkpoint/checkpoint.h"

namespace replayeval {

class WeightLoader {
 public:
  // Tensor names are looked up behind the first of `prefixes` that `probe` exists under; throws CheckpointError naming
  // the probe if it exists under none.
  WeightLoader(const Checkpoint& checkpoint, at::Device device, const std::vector<std::string>& prefixes,
               const std::string& probe);

  // The tensor `prefix + name`, converted to `type` on the device. Stored as F32, BF16 or F16. Throws CheckpointError
  // naming file and tensor when it is missing, has another shape or type, or holds a NaN or infinity (naming the
  // first).
  at::Tensor load(const std::string& name, const std::vector<std::int64_t>& shape, at::ScalarType type);
  at::Tensor load_unprefixed(const std::string& name, const std::vector<std::int64_t>& shape, at::ScalarType type);

  bool has_unprefixed(const std::string& name) const;
  std::int64_t parameter_count() const { return parameter_count_; }  // elements loaded so far

  // Throws CheckpointError naming the first tensor that was not loaded and does not begin with a prefix in `skipped`.
  void finish(const std::vector<std::string>& skipped) const;

 private:
  const Checkpoint& checkpoint_;
  at::Device device_;
  std::string prefix_;
  std::set<std::string> loaded_;
  std::int64_t parameter_count_ = 0;
};

}  // namespace replayeval
