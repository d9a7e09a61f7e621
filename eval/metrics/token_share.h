// The share of tokens that have a property, with an interval that holds where few or none lack it.
#pragma once

#include <cstdint>
#include <span>

#include "eval/metrics/statistics.h"

namespace replayeval::metrics {

// Share of set flags; Clopper-Pearson on the effective number of tokens (Korn & Graubard 1998), whose design effect is
// that of the resampling units of `options`. A t interval over units, which is symmetric, would end beyond 1, and would
// be [1, 1] where no flag is missing. There tokens count as independent: then the interval is that of the rule of
// three. Absent with too few units. Throws as clustered_mean does.
Estimate token_share(std::span<const std::uint8_t> flags, std::span<const std::int64_t> document,
                     const IntervalOptions& options);

}  // namespace replayeval::metrics
