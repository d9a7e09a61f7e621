// The interval of a share by the exact binomial test.
#pragma once

#include "eval/metrics/statistics.h"

namespace replayeval::metrics {

// Clopper & Pearson (Biometrika 26, 1934): covers at least `confidence` whatever the true share. `right` of `n`, which
// may be fractions, as effective sizes are.
Interval clopper_pearson(double right, double n, double confidence);

}  // namespace replayeval::metrics
