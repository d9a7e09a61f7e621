#include "eval/metrics/paired_accuracy.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/math/distributions/binomial.hpp>
#include <boost/math/special_functions/beta.hpp>
#include <cmath>
#include <stdexcept>
#include <string>
#include <vector>

#include "eval/metrics/clustered_share.h"
#include "eval/metrics/share_interval.h"
#include "eval/metrics/sign_flip_test.h"

namespace replayeval::metrics {
namespace {

void check_confidence(double confidence) {
  if (!(confidence > 0.0 && confidence < 1.0))
    throw std::invalid_argument(fmt::format("confidence is {}, expected a number between 0 and 1", confidence));
}

std::vector<double> as_numbers(std::span<const std::uint8_t> right) {
  std::vector<double> numbers(right.size());
  for (std::size_t i = 0; i < right.size(); ++i) {
    if (right[i] > 1) throw std::invalid_argument(fmt::format("answer {} is {}, expected 0 or 1", i, right[i]));
    numbers[i] = right[i];
  }
  return numbers;
}

std::string items_of(const ItemSums& sums) {
  return static_cast<double>(sums.items()) == sums.n ? fmt::format("over {} items", sums.items())
                                                     : fmt::format("clustered over {} items", sums.items());
}

struct Share {
  double right = 0.0, n = 0.0;  // effective
  ItemSums sums;
};

Share effective_share(std::span<const std::uint8_t> right, std::span<const std::int64_t> item, double confidence) {
  check_confidence(confidence);
  Share share;
  share.sums = sum_by_item(as_numbers(right), item);
  const double p = share.sums.mean();
  share.n = effective_size(share.sums, p * (1.0 - p) / (share.sums.n - 1.0), confidence);
  share.right = p * share.n;
  return share;
}

void count(PairedAccuracy& result, std::span<const std::uint8_t> baseline, std::span<const std::uint8_t> arm) {
  for (std::size_t i = 0; i < arm.size(); ++i) {
    if (baseline[i] != 0)
      ++(arm[i] != 0 ? result.both_right : result.lost);
    else
      ++(arm[i] != 0 ? result.gained : result.both_wrong);
  }
  result.n = static_cast<std::int64_t>(arm.size());
  const auto n = static_cast<double>(result.n);
  result.baseline = static_cast<double>(result.both_right + result.lost) / n;
  result.arm = static_cast<double>(result.both_right + result.gained) / n;
}

double exact_p_value(const PairedAccuracy& result, const ItemSums& differences) {
  if (result.items == result.n) return mcnemar_exact(result.gained, result.lost);
  std::vector<std::int64_t> whole;
  for (const double sum : differences.sum) whole.push_back(std::llround(sum));
  return sign_flip_test(whole);
}

}  // namespace

double mcnemar_exact(std::int64_t gained, std::int64_t lost) {
  if (gained < 0 || lost < 0)
    throw std::invalid_argument(fmt::format("{} gained and {} lost pairs, expected 0 or more of each", gained, lost));
  if (gained == lost) return 1.0;
  const boost::math::binomial fair(static_cast<double>(gained + lost), 0.5);
  return std::min(1.0, 2.0 * boost::math::cdf(fair, static_cast<double>(std::min(gained, lost))));
}

DiscordantPairs PairedAccuracy::effective_pairs() const {
  const double scale = effective_n / static_cast<double>(n);
  return {static_cast<double>(gained) * scale, static_cast<double>(lost) * scale, effective_n};
}

PairedAccuracy paired_accuracy(std::span<const std::uint8_t> baseline_right, std::span<const std::uint8_t> arm_right,
                               std::span<const std::int64_t> item, double confidence) {
  check_confidence(confidence);
  if (arm_right.size() != baseline_right.size())
    throw std::invalid_argument(
        fmt::format("the arm has {} answers, expected the baseline's {}", arm_right.size(), baseline_right.size()));
  std::vector<double> difference = as_numbers(arm_right);
  const std::vector<double> baseline = as_numbers(baseline_right);
  for (std::size_t i = 0; i < difference.size(); ++i) difference[i] -= baseline[i];
  const ItemSums sums = sum_by_item(difference, item);

  PairedAccuracy result;
  count(result, baseline_right, arm_right);
  result.items = sums.items();
  const double discordant = static_cast<double>(result.gained + result.lost) / sums.n;
  const double variance = discordant - sums.mean() * sums.mean();
  result.effective_n = effective_size(sums, variance / (sums.n - 1.0), confidence);
  result.delta.value = static_cast<double>(result.gained - result.lost) / sums.n;
  result.delta.interval = score_interval(result.effective_pairs(), confidence);
  result.delta.p_value = exact_p_value(result, sums);
  result.delta.n = result.n;
  result.delta.units = result.items;
  result.delta.confidence = confidence;
  result.delta.kind = IntervalKind::score;
  result.delta.method = "paired score interval (Tango), McNemar exact " + items_of(sums);
  return result;
}

Estimate accuracy(std::span<const std::uint8_t> right, std::span<const std::int64_t> item, double confidence) {
  const Share share = effective_share(right, item, confidence);
  Estimate estimate;
  estimate.value = share.sums.mean();
  estimate.interval = clopper_pearson(share.right, share.n, confidence);
  estimate.n = static_cast<std::int64_t>(right.size());
  estimate.units = share.sums.items();
  estimate.confidence = confidence;
  estimate.kind = IntervalKind::exact;
  estimate.method = "Clopper-Pearson " + items_of(share.sums);
  return estimate;
}

double chance_p_value(std::span<const std::uint8_t> right, std::span<const std::int64_t> item, double chance,
                      double confidence) {
  if (!(chance >= 0.0 && chance <= 1.0))
    throw std::invalid_argument(fmt::format("chance is {}, expected a number from 0 to 1", chance));
  const Share share = effective_share(right, item, confidence);
  if (share.right <= 0.0) return 1.0;
  return boost::math::ibeta(share.right, share.n - share.right + 1.0, chance);
}

}  // namespace replayeval::metrics
