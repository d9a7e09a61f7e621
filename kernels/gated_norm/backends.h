// The implementations behind the public function, one namespace a device. Arguments have been checked.
#pragma once

#include "kernels/gated_norm/gated_norm.h"

namespace replayeval::cpu {

void gated_norm(const GatedNorm&);

}  // namespace replayeval::cpu

namespace replayeval::cuda {

// `stream` is a cudaStream_t.
void gated_norm(void* stream, const GatedNorm&);

}  // namespace replayeval::cuda
