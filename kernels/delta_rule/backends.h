// The implementations behind the public functions, one namespace a device. Arguments have been checked.
#pragma once

#include "kernels/cursors.h"
#include "kernels/delta_rule/delta_rule.h"

namespace replayeval::delta_rule::cpu {

using replayeval::cpu::advance_cursors;

void exact(Family, const Shape&, const Block&, const Inputs&, const Parameters&, const State&, const Output&);
void replay(Family, const Shape&, const ReplayForm&, const Block&, const Inputs&, const Parameters&, const State&,
            const Ring&, const Output&);
void reconstruct(Family, const Shape&, const ReplayForm&, const Block&, const State&, const Ring&, float* state_out);

}  // namespace replayeval::delta_rule::cpu

namespace replayeval::delta_rule::cuda {

using replayeval::cuda::advance_cursors;

// `stream` is a cudaStream_t.
void exact(void* stream, Family, const Shape&, const Block&, const Inputs&, const Parameters&, const State&,
           const Output&);
void replay(void* stream, Family, const Shape&, const ReplayForm&, const Block&, const Inputs&, const Parameters&,
            const State&, const Ring&, const Output&);
void reconstruct(void* stream, Family, const Shape&, const ReplayForm&, const Block&, const State&, const Ring&,
                 float* state_out);

}  // namespace replayeval::delta_rule::cuda
