// The kernels for blocks of tokens at the tuned key dim. Each returns false, and does nothing, where a call is not for
// it.
#pragma once

#include "kernels/delta_rule/delta_rule.h"

#include <cuda_runtime.h>

namespace replayeval::delta_rule::cuda {

bool exact_scan(cudaStream_t stream, Family family, const Shape& shape, const Block& block, const Inputs& in,
                const Parameters& parameters, const State& state, const Output& out);

}  // namespace replayeval::delta_rule::cuda
