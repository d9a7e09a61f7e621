// Statistics of paired evaluations: clustered means with intervals, perplexity, quantiles, power laws.
// Plain C++ and Boost.Math. All inputs are per-token arrays; all results are float64. Non-finite input, arrays of
// unequal length and options out of range throw std::invalid_argument naming what was given.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace replayeval::metrics {

struct Interval {
  double low = 0.0, high = 0.0;
};

enum class IntervalKind : std::uint8_t { bootstrap, t, score, exact, pooled };

// A number, the interval around it if one could be computed, and how.
struct Estimate {
  double value = 0.0;
  std::optional<Interval> interval;
  std::optional<double> p_value;  // two-sided, of the value being zero
  std::int64_t n = 0;             // tokens behind the value
  std::int64_t units = 0;         // resampling units (documents or blocks) behind the interval
  double confidence = 0.0;        // of the interval
  IntervalKind kind = IntervalKind::t;
  std::string method;  // e.g. "paired t over 83 blocks of ~256 tokens"
};

// What is resampled, and how often.
//   documents >= min_documents:  whole documents.
//   fewer:                       each document longer than block_tokens is cut into round(length / block_tokens)
//                                contiguous blocks of near-equal length; shorter ones stay whole. Blocks never cross
//                                documents.
// Blocks describe the variation inside the text at hand; only documents speak for text like it. The method string says
// which was used.
struct IntervalOptions {
  double confidence = 0.95;               // in (0, 1)
  std::int64_t bootstrap_samples = 2000;  // >= 100
  std::uint64_t seed = 0;                 // same seed, same interval, on every platform
  std::int64_t min_documents = 20;
  std::int64_t block_tokens = 256;  // >= 1
  const char* unit = "documents";   // what the method string calls them
};

// A few units show little of how much units vary. Resampling them can show no more than they do, and is far too sure
// (reports/measurements.md, "Intervals"); Student's t knows how little it knows, down to two degrees of freedom. Of
// fewer than 10 units that are all alike nothing is said: no interval.
inline constexpr std::int64_t fewest_units_for_interval = 3;  // fewer: no interval and no p-value at all

// A mean over all tokens, with two intervals side by side. If every value of enough units is exactly equal to 0 both
// intervals are [0, 0] and the p-value is 1.
struct MeanEstimate {
  Estimate primary;  // of studentised_mean (bootstrap.h): the further ends of the studentised bootstrap and of t
  Estimate t;        // Student t with units - 1 degrees of freedom, linearised ratio estimator (Cochran 1977, 6.4)
};

// Mean of `values`; document[i] names the document of token i. Tokens of one document must be adjacent and in text
// order. Throws std::invalid_argument on empty input.
MeanEstimate clustered_mean(std::span<const double> values, std::span<const std::int64_t> document,
                            const IntervalOptions& options);

// The t interval of clustered_mean alone, without the cost of the bootstrap.
Estimate clustered_t(std::span<const double> values, std::span<const std::int64_t> document,
                     const IntervalOptions& options);

// Mean log-likelihood per token of the arm minus the baseline's, on the same tokens; nats.
MeanEstimate paired_delta(std::span<const double> baseline_log_prob, std::span<const double> arm_log_prob,
                          std::span<const std::int64_t> document, const IntervalOptions& options);
MeanEstimate paired_delta(std::span<const float> baseline_log_prob, std::span<const float> arm_log_prob,
                          std::span<const std::int64_t> document, const IntervalOptions& options);

// exp(-mean log-likelihood), its interval the transformed t interval of the mean.
Estimate perplexity(std::span<const double> log_prob, std::span<const std::int64_t> document,
                    const IntervalOptions& options);

// Of a delta of mean log-likelihood d: exp(-d) - 1, that is PPL_arm / PPL_baseline - 1, with the interval transformed.
Estimate relative_perplexity_delta(const Estimate& delta);

// One row of a delta by position. Tokens with begin <= position < end.
struct BucketDelta {
  std::int64_t begin = 0, end = 0, n = 0;
  double baseline_perplexity = 0.0, arm_perplexity = 0.0;
  MeanEstimate delta;
};

// Cuts tokens by position: edges e0 < e1 < ... give buckets [e0, e1), [e1, e2) ...; empty buckets are left out.
std::vector<BucketDelta> delta_by_position(std::span<const double> baseline_log_prob,
                                           std::span<const double> arm_log_prob, std::span<const std::int64_t> document,
                                           std::span<const std::int64_t> position, std::span<const std::int64_t> edges,
                                           const IntervalOptions& options);

// Quantiles with linear interpolation between order statistics (Hyndman & Fan type 7, NumPy's default), found by
// selection, not sorting. probabilities in [0, 1]; `values` is consumed.
std::vector<double> quantiles(std::vector<float> values, std::span<const double> probabilities);
double quantile(std::vector<float> values, double probability);

// Running mean and variance (Welford 1962; merged as in Chan, Golub & LeVeque 1983).
class RunningMoments {
 public:
  void add(double value);
  void merge(const RunningMoments& other);
  std::int64_t count() const { return count_; }
  double mean() const { return mean_; }
  double variance() const;  // unbiased; 0 below two values

 private:
  std::int64_t count_ = 0;
  double mean_ = 0.0, squares_ = 0.0;
};

// Share of set flags; 0 for none. Throws on an empty array.
double share(std::span<const std::uint8_t> flags);

// error ~ c * flushes^exponent by least squares on logarithms.
struct PowerLaw {
  double c = 0.0, exponent = 0.0;
  std::optional<Interval> exponent_interval;  // Student t, points - 2 degrees of freedom; absent for two points
  double r_squared = 0.0;
  std::int64_t points = 0;
  double confidence = 0.0;
};

// Points at which flushes or error is not positive carry no logarithm and are left out; nullopt when fewer than two
// distinct flush counts remain. The interval takes the points as independent: give one point per flush count (averaged
// over sequences), not one per sequence and step.
std::optional<PowerLaw> fit_power_law(std::span<const double> flushes, std::span<const double> error,
                                      double confidence = 0.95);

}  // namespace replayeval::metrics
