// The kernels for single steps on Hopper. Each returns false, and does nothing, where a call is not for it.
#pragma once

#include "kernels/delta_rule/delta_rule.h"

#include <cuda_runtime.h>

namespace replayeval::delta_rule::cuda {

bool exact_stream(cudaStream_t stream, Family family, const Shape& shape, const Block& block, const Inputs& in,
                  const Parameters& parameters, const State& state, const Output& out);
// With a decay for each key channel.
bool exact_stream_channels(cudaStream_t stream, const Shape& shape, const Block& block, const Inputs& in,
                           const Parameters& parameters, const State& state, const Output& out);
// For small batches; replay_few_channels(), with a decay for each key channel.
bool replay_few_channels(cudaStream_t stream, const Shape& shape, const ReplayForm& form, const Block& block,
                         const Inputs& in, const Parameters& parameters, const State& state, const Ring& ring,
                         const Output& out);
bool replay_few(cudaStream_t stream, Family family, const Shape& shape, const ReplayForm& form, const Block& block,
                const Inputs& in, const Parameters& parameters, const State& state, const Ring& ring,
                const Output& out);
bool replay_stream(cudaStream_t stream, Family family, const Shape& shape, const ReplayForm& form, const Block& block,
                   const Inputs& in, const Parameters& parameters, const State& state, const Ring& ring,
                   const Output& out);

}  // namespace replayeval::delta_rule::cuda
