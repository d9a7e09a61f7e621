// The distance between neighbouring values of an element type: what a tie between logits is measured in.
#pragma once

#include "kernels/types.h"

namespace replayeval::metrics {

// One unit in the last place of `dtype` at |magnitude|, constant below the smallest normal number; > 0.
double spacing(double magnitude, Dtype dtype);

}  // namespace replayeval::metrics
