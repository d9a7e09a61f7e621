// Per-token arrays to the handful of numbers that reports show.
#include <algorithm>
#include <array>
#include <cmath>
#include <stdexcept>

#include "eval/metrics/bootstrap.h"
#include "eval/metrics/divergence.h"
#include "eval/metrics/token_share.h"

namespace replayeval::metrics {
namespace {

template <typename T>
std::vector<double> widened(const std::vector<T>& values) {
  return {values.begin(), values.end()};
}

Estimate plain(double value, std::size_t n) {
  Estimate estimate;
  estimate.value = value;
  estimate.n = static_cast<std::int64_t>(n);
  return estimate;
}

// "kl_p99.9": the names and what they stand for.
struct NamedQuantile {
  const char* name;
  double probability;
};
constexpr std::array kl_quantiles{NamedQuantile{"kl_median", 0.5}, NamedQuantile{"kl_p90", 0.9},
                                  NamedQuantile{"kl_p99", 0.99}, NamedQuantile{"kl_p99.9", 0.999},
                                  NamedQuantile{"kl_max", 1.0}};
constexpr std::array dp_quantiles{NamedQuantile{"dp_p1", 0.01}, NamedQuantile{"dp_p5", 0.05},
                                  NamedQuantile{"dp_median", 0.5}, NamedQuantile{"dp_p95", 0.95},
                                  NamedQuantile{"dp_p99", 0.99}};

template <std::size_t count>
void add_quantiles(const std::vector<float>& values, const std::array<NamedQuantile, count>& names,
                   std::map<std::string, Estimate>& result) {
  std::array<double, count> probabilities{};
  for (std::size_t i = 0; i < count; ++i) probabilities[i] = names[i].probability;
  const std::vector<double> found = quantiles(values, probabilities);
  for (std::size_t i = 0; i < count; ++i) result[names[i].name] = plain(found[i], values.size());
}

double root_mean_square(const std::vector<float>& values) {
  double squares = 0.0;
  for (const float value : values) squares += static_cast<double>(value) * static_cast<double>(value);
  return std::sqrt(squares / static_cast<double>(values.size()));
}

double changed_untied(const TokenDivergence& arm, const TokenDivergence& baseline) {
  std::size_t changed = 0;
  for (std::size_t i = 0; i < arm.size(); ++i)
    if (arm.same_top1[i] == 0 && arm.tie[i] == 0 && baseline.tie[i] == 0) ++changed;
  return static_cast<double>(changed) / static_cast<double>(arm.size());
}

// A mean that cannot be negative: an interval may step outside, the truth may not.
Estimate within(Estimate estimate, double low, double high) {
  if (estimate.interval)
    estimate.interval = Interval{std::max(low, estimate.interval->low), std::min(high, estimate.interval->high)};
  return estimate;
}

}  // namespace

std::map<std::string, Estimate> summary(const TokenDivergence& arm, const TokenDivergence& baseline,
                                        std::span<const std::int64_t> document, const IntervalOptions& options) {
  const std::size_t n = arm.size();
  for (const std::size_t length : {arm.kl.size(), arm.delta_p.size(), arm.same_top1.size(), arm.tie.size(),
                                   baseline.size(), baseline.tie.size(), document.size()})
    if (length != n)
      throw std::invalid_argument("divergence summary: arrays of " + std::to_string(n) + " and " +
                                  std::to_string(length) + " tokens, expected equal lengths");
  if (n == 0) throw std::invalid_argument("divergence summary of no tokens, expected at least 1");
  std::map<std::string, Estimate> result;
  add_quantiles(arm.kl, kl_quantiles, result);
  add_quantiles(arm.delta_p, dp_quantiles, result);
  result["kl_mean"] = within(studentised_mean(widened(arm.kl), document, options), 0.0, HUGE_VAL);
  result["dp_mean"] = studentised_mean(widened(arm.delta_p), document, options);
  result["dp_rms"] = plain(root_mean_square(arm.delta_p), n);
  result["same_top1"] = token_share(arm.same_top1, document, options);
  result["tie_share"] = plain(share(arm.tie), n);
  result["top1_changed_untied"] = plain(changed_untied(arm, baseline), n);
  return result;
}

}  // namespace replayeval::metrics
