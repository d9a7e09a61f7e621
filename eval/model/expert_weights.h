// Loads the weights of experts, which folders hold as one tensor each or as one of all.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "eval/model/hybrid_builder.h"

namespace replayeval {

// [experts, out, in] in compute dtype: the tensor under the first of the names `stacked` that the folder holds, else
// for each expert N, of `each`.N.`leaves`, the rows of all leaves one behind the other, [out / leaves, in] each. Throws
// CheckpointError as WeightLoader::load().
struct ExpertTensors {
  std::vector<std::string> stacked;
  std::string each;  // empty where no folder holds them one by one
  std::vector<std::string> leaves;
};
at::Tensor load_experts(HybridBuilder& builder, const ExpertTensors& names, std::int64_t experts, std::int64_t out,
                        std::int64_t in);

}  // namespace replayeval
