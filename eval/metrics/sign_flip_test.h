// The exact test for paired differences that come in items.
#pragma once

#include <cstdint>
#include <span>

namespace replayeval::metrics {

// Two-sided p-value of the sum of `differences`, one whole number an item, when each item's sign is as likely one as
// the other: the arms being exchangeable within items (Fisher's randomisation test). Items of one question each make it
// McNemar's exact test. Exact by convolution; 1 where all differences are 0.
double sign_flip_test(std::span<const std::int64_t> differences);

}  // namespace replayeval::metrics
