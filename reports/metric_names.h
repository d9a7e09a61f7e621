// The names that metrics have in results.json. Writers may add others; reports list what they do not know under its own
// name.
#pragma once

namespace replayeval::reports::names {

// Workload::arms[arm].metrics
inline constexpr const char* perplexity = "perplexity";                    // exp(-mean log-likelihood)
inline constexpr const char* mean_log_likelihood = "mean_log_likelihood";  // nats a token

// Workload::deltas[arm]. A second interval of the same quantity by another method has "_t" after its name.
inline constexpr const char* delta_log_likelihood = "mean_log_likelihood";  // arm - baseline, nats a token
inline constexpr const char* delta_log_likelihood_t = "mean_log_likelihood_t";
inline constexpr const char* perplexity_ratio = "perplexity_relative";  // PPL_arm / PPL_baseline - 1, a fraction
inline constexpr const char* perplexity_ratio_t = "perplexity_relative_t";

// Workload::divergence[arm]: KL(baseline || arm) in nats a token; Δp: probability of the target, arm - baseline;
// same_top1 and tie_share: fractions of tokens.
inline constexpr const char* kl_mean = "kl_mean";
inline constexpr const char* kl_max = "kl_max";
inline constexpr const char* kl_p999 = "kl_p99.9";
inline constexpr const char* kl_p99 = "kl_p99";
inline constexpr const char* kl_p90 = "kl_p90";
inline constexpr const char* kl_median = "kl_median";
inline constexpr const char* dp_mean = "dp_mean";
inline constexpr const char* dp_rms = "dp_rms";
inline constexpr const char* same_top1 = "same_top1";
inline constexpr const char* tie_share = "tie_share";

}  // namespace replayeval::reports::names
