#include "eval/comparator/baseline/stored_comparison.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "eval/comparator/estimates.h"
#include "eval/comparator/perplexity_summary.h"

namespace replayeval {
namespace {

// What rounding the hidden states, and the head of another machine, make of the log-probabilities of that time.
double largest_difference(const std::vector<double>& kept, const std::vector<double>& again) {
  double largest = 0.0;
  for (std::size_t token = 0; token < kept.size(); ++token)
    largest = std::max(largest, std::abs(kept[token] - again[token]));
  return largest;
}

}  // namespace

void compare_with_stored(const RunContext& context, const TokenRecords& records, const StoredWorkload& stored,
                         reports::Workload& result) {
  const metrics::IntervalOptions options = interval_options(context.config);
  const std::vector<StoredPair> pairs = context.against->pairs(context.arms);
  const bool whole = !records.against.empty();  // distributions, not the tokens' own probabilities alone
  double rounding = 0.0;
  for (std::size_t p = 0; p < pairs.size(); ++p) {
    const metrics::TokenDivergence& arm = whole ? records.against[p] : records.arms[pairs[p].arm];
    metrics::TokenDivergence then;
    then.log_prob = stored.log_probs(pairs[p].stored);
    if (whole) {
      rounding = std::max(rounding, largest_difference(then.log_prob, records.stored[p].log_prob));
      then = records.stored[p];
    }
    reports::StoredComparison comparison;
    comparison.arm = context.arms[pairs[p].arm].name;
    comparison.stored_arm = context.against->arm_name(pairs[p].stored);
    comparison.deltas = perplexity_deltas(then, arm, records.document, options);
    if (whole)
      for (const auto& [metric, estimate] : metrics::summary(arm, then, records.document, options))
        comparison.divergence[metric] = metric_of(estimate);
    result.against.push_back(std::move(comparison));
  }
  result.data["against"] = context.against->describe();
  if (whole) result.data["against"]["log_prob_max_difference"] = rounding;
}

}  // namespace replayeval
