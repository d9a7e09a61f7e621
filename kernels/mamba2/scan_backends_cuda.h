// The kernels for blocks of tokens at the tuned state size. Each returns false, and does nothing, where a call is not
// for it.
#pragma once

#include "kernels/mamba2/mamba2.h"

#include <cuda_runtime.h>

namespace replayeval::mamba2::cuda {

bool exact_scan(cudaStream_t stream, const Shape& shape, const Block& block, const Inputs& in,
                const Parameters& parameters, const State& state, const Output& out);
// All but what it leaves to be appended to the ring.
bool replay_scan(cudaStream_t stream, const Shape& shape, const ReplayForm& form, const Block& block, const Inputs& in,
                 const Parameters& parameters, const State& state, const Ring& ring, const Output& out);

}  // namespace replayeval::mamba2::cuda
