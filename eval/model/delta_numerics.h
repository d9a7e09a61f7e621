// Where the gated delta rule's inputs are rounded, unless a run says otherwise.
#pragma once

#include "kernels/delta_rule/delta_rule.h"

namespace replayeval {

// Published training code (flash-linear-attention's layers, and transformers) rounds beta's sigmoid to the compute
// dtype and keeps the decay in float32; decode kernels normalise q and k in float32.
inline constexpr delta_rule::Numerics default_delta_numerics = {
    delta_rule::Precision::compute, delta_rule::Precision::float32, delta_rule::Precision::float32};

}  // namespace replayeval
