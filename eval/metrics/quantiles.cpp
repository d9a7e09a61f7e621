// Order statistics and running moments.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <stdexcept>

#include "eval/metrics/statistics.h"

namespace replayeval::metrics {

std::vector<double> quantiles(std::vector<float> values, std::span<const double> probabilities) {
  if (values.empty()) throw std::invalid_argument("quantiles of no values, expected at least 1");
  for (std::size_t i = 0; i < values.size(); ++i)
    if (!std::isfinite(values[i]))
      throw std::invalid_argument("quantiles: value " + std::to_string(i) + " is not finite");
  for (const double p : probabilities)
    if (!(p >= 0.0 && p <= 1.0))
      throw std::invalid_argument("quantile of probability " + std::to_string(p) + ", expected 0 to 1");
  // In ascending order each selection only has to look at what the one before left on its right.
  std::vector<std::size_t> order(probabilities.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](auto a, auto b) { return probabilities[a] < probabilities[b]; });
  std::vector<double> result(probabilities.size());
  auto from = values.begin();
  for (const std::size_t o : order) {
    const double place = probabilities[o] * static_cast<double>(values.size() - 1);
    const auto below = std::min(static_cast<std::size_t>(place), values.size() - 1);
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(below);
    std::nth_element(from, middle, values.end());
    const double low = *middle;
    const double fraction = place - static_cast<double>(below);
    const double high = middle + 1 != values.end() ? *std::min_element(middle + 1, values.end()) : low;
    result[o] = fraction > 0.0 ? low + fraction * (high - low) : low;
    from = middle;
  }
  return result;
}

double quantile(std::vector<float> values, double probability) {
  return quantiles(std::move(values), std::span<const double>(&probability, 1)).front();
}

void RunningMoments::add(double value) {
  ++count_;
  const double before = value - mean_;
  mean_ += before / static_cast<double>(count_);
  squares_ += before * (value - mean_);
}

void RunningMoments::merge(const RunningMoments& other) {
  if (other.count_ == 0) return;
  const auto mine = static_cast<double>(count_), theirs = static_cast<double>(other.count_);
  const double difference = other.mean_ - mean_;
  count_ += other.count_;
  mean_ += difference * theirs / (mine + theirs);
  squares_ += other.squares_ + difference * difference * mine * theirs / (mine + theirs);
}

double RunningMoments::variance() const { return count_ < 2 ? 0.0 : squares_ / static_cast<double>(count_ - 1); }

double share(std::span<const std::uint8_t> flags) {
  if (flags.empty()) throw std::invalid_argument("share of no flags, expected at least 1");
  const auto set = std::count_if(flags.begin(), flags.end(), [](std::uint8_t flag) { return flag != 0; });
  return static_cast<double>(set) / static_cast<double>(flags.size());
}

}  // namespace replayeval::metrics
