// Checks at the door of every kernel. Each throws std::invalid_argument with what was given and what is allowed.
#pragma once

#include "kernels/mamba2/mamba2.h"

namespace replayeval::mamba2 {

// Throws std::runtime_error when the call is for CUDA and this build has no CUDA kernels.
void check_device(const Device&, const char* function);

void check_exact(const Device&, const Shape&, const Block&, const Inputs&, const Parameters&, const State&,
                 const Output&);
void check_replay(const Device&, const Shape&, const ReplayForm&, const Block&, const Inputs&, const Parameters&,
                  const State&, const Ring&, const Output&);
void check_reconstruct(const Device&, const Shape&, const ReplayForm&, const Block&, const Parameters&, const State&,
                       const Ring&, const float* state_out);
void check_advance_cursors(const Block&, std::int64_t buffer_len, const std::int32_t* cursor);

}  // namespace replayeval::mamba2
