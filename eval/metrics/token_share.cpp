#include "eval/metrics/token_share.h"

#include <stdexcept>
#include <string>

#include "eval/metrics/clustered_share.h"
#include "eval/metrics/resampling_units.h"
#include "eval/metrics/share_interval.h"

namespace replayeval::metrics {

Estimate token_share(std::span<const std::uint8_t> flags, std::span<const std::int64_t> document,
                     const IntervalOptions& options) {
  if (flags.size() != document.size())
    throw std::invalid_argument("document has " + std::to_string(document.size()) + " entries, expected " +
                                std::to_string(flags.size()));
  const ResamplingUnits units = resampling_units(document, options);
  ItemSums sums;
  for (const TokenRun& run : units.runs) {
    double set = 0.0;
    for (std::size_t i = run.begin; i < run.end; ++i) set += flags[i] != 0 ? 1.0 : 0.0;
    sums.sum.push_back(set);
    sums.count.push_back(static_cast<double>(run.end - run.begin));
    sums.total += set;
  }
  sums.n = static_cast<double>(flags.size());
  Estimate estimate;
  estimate.value = sums.mean();
  estimate.n = static_cast<std::int64_t>(flags.size());
  estimate.units = sums.items();
  estimate.confidence = options.confidence;
  estimate.kind = IntervalKind::exact;
  estimate.method = "Clopper-Pearson " + units.description;
  if (estimate.units < fewest_units_for_interval) return estimate;
  const double variance = estimate.value * (1.0 - estimate.value) / (sums.n - 1.0);
  const double effective = variance > 0.0 ? effective_size(sums, variance, options.confidence) : sums.n;
  estimate.interval = clopper_pearson(estimate.value * effective, effective, options.confidence);
  return estimate;
}

}  // namespace replayeval::metrics
