#include "eval/comparator/churn/churn_tally.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <limits>

namespace replayeval {
namespace {

at::Tensor bits_of(const at::Tensor& values) {
  if (!values.is_floating_point()) return values;
  return values.contiguous().view(values.element_size() == 4 ? at::kInt : at::kShort);
}

}  // namespace

std::string_view churn_level_name(ChurnLevel level) {
  if (level == ChurnLevel::mixer) return "mixer";
  return level == ChurnLevel::prefix ? "prefix" : "model";
}

TokenDifferences compare_tokens(const at::Tensor& found, const at::Tensor& expected) {
  const std::int64_t tokens = found.size(0);
  TokenDifferences differences;
  if (found.numel() == 0) {
    differences.differing.assign(static_cast<std::size_t>(tokens), false);
    differences.deviation.assign(static_cast<std::size_t>(tokens), 0.0);
    return differences;
  }
  const at::Tensor differing = bits_of(found).ne(bits_of(expected)).reshape({tokens, -1}).any(1).cpu();
  const at::Tensor wide =
      found.to(at::kDouble).sub_(expected.to(at::kDouble)).abs_().reshape({tokens, -1}).amax(1).cpu();
  for (std::int64_t token = 0; token < tokens; ++token) {
    const bool differs = differing.const_data_ptr<bool>()[token];
    const double deviation = wide.const_data_ptr<double>()[token];
    differences.differing.push_back(differs);
    const bool finite = deviation <= std::numeric_limits<double>::max();
    differences.deviation.push_back(finite ? deviation : differs ? std::numeric_limits<double>::infinity() : 0.0);
  }
  return differences;
}

void ChurnTally::add(ChurnLevel level, std::size_t arm, ChurnKind event, bool differs, double deviation) {
  Sum& sum = sums_[{level, event, arm}];
  ++sum.compared;
  if (differs) ++sum.differing;
  sum.deviation = std::max(sum.deviation, deviation);
}

void ChurnTally::add(ChurnLevel level, std::size_t arm, const std::vector<TokenStory>& stories,
                     const TokenDifferences& differences) {
  for (std::size_t token = 0; token < stories.size(); ++token) {
    const bool differs = differences.differing[token];
    const double deviation = differences.deviation[token];
    add(level, arm, stories[token].came, differs, deviation);
    if (stories[token].padded) add(level, arm, ChurnKind::padded_rows, differs, deviation);
    if (stories[token].reordered) add(level, arm, ChurnKind::reordered_rows, differs, deviation);
  }
}

double ChurnTally::max_deviation(ChurnLevel level, std::size_t arm) const {
  double largest = 0.0;
  for (const auto& [key, sum] : sums_)
    if (std::get<0>(key) == level && std::get<2>(key) == arm) largest = std::max(largest, sum.deviation);
  return largest;
}

std::vector<reports::ChurnCheck> ChurnTally::checks(const std::vector<std::string>& names) const {
  std::vector<reports::ChurnCheck> checks;
  for (const auto& [key, sum] : sums_) {
    const auto& [level, event, arm] = key;
    if (arm >= names.size()) continue;
    reports::ChurnCheck check;
    check.level = churn_level_name(level);
    check.event = churn_kind_name(event);
    check.arm = names[arm];
    check.batch = batch_;
    check.compared = sum.compared;
    check.differing = sum.differing;
    check.max_deviation = sum.deviation;
    checks.push_back(std::move(check));
  }
  return checks;
}

}  // namespace replayeval
