// The implementations behind the public functions, one namespace a device. Arguments have been checked.
#pragma once

#include "kernels/cursors.h"
#include "kernels/mamba2/mamba2.h"

namespace replayeval::mamba2::cpu {

using replayeval::cpu::advance_cursors;

void exact(const Shape&, const Block&, const Inputs&, const Parameters&, const State&, const Output&);
void replay(const Shape&, const ReplayForm&, const Block&, const Inputs&, const Parameters&, const State&, const Ring&,
            const Output&);
void reconstruct(const Shape&, const ReplayForm&, const Block&, const Parameters&, const State&, const Ring&,
                 float* state_out);

}  // namespace replayeval::mamba2::cpu

namespace replayeval::mamba2::cuda {

using replayeval::cuda::advance_cursors;

// `stream` is a cudaStream_t.
void exact(void* stream, const Shape&, const Block&, const Inputs&, const Parameters&, const State&, const Output&);
void replay(void* stream, const Shape&, const ReplayForm&, const Block&, const Inputs&, const Parameters&, const State&,
            const Ring&, const Output&);
void reconstruct(void* stream, const Shape&, const ReplayForm&, const Block&, const Parameters&, const State&,
                 const Ring&, float* state_out);

}  // namespace replayeval::mamba2::cuda
