// The implementations behind the public function, one namespace a device. Arguments have been checked.
#pragma once

#include "kernels/conv/conv.h"

namespace replayeval::cpu {

void causal_conv(const DecodeBlock&, const Conv&);

}  // namespace replayeval::cpu

namespace replayeval::cuda {

// `stream` is a cudaStream_t.
void causal_conv(void* stream, const DecodeBlock&, const Conv&);

}  // namespace replayeval::cuda
