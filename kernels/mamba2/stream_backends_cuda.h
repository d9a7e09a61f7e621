// The kernels for single steps on Hopper. Each returns false, and does nothing, where a call is not for it.
#pragma once

#include "kernels/mamba2/mamba2.h"

#include <cuda_runtime.h>

namespace replayeval::mamba2::cuda {

bool exact_stream(cudaStream_t stream, const Shape& shape, const Block& block, const Inputs& in,
                  const Parameters& parameters, const State& state, const Output& out);
// For small batches.
bool replay_few(cudaStream_t stream, const Shape& shape, const ReplayForm& form, const Block& block, const Inputs& in,
                const Parameters& parameters, const State& state, const Ring& ring, const Output& out);
bool replay_stream(cudaStream_t stream, const Shape& shape, const ReplayForm& form, const Block& block,
                   const Inputs& in, const Parameters& parameters, const State& state, const Ring& ring,
                   const Output& out);

}  // namespace replayeval::mamba2::cuda
