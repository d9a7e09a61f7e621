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

// Of generations. Workload::arms[arm].metrics and Workload::deltas[arm]: means over sequences.
inline constexpr const char* length = "length";                        // tokens
inline constexpr const char* truncated = "truncated";                  // share that reached the limit
inline constexpr const char* looped = "looped";                        // share with a loop
inline constexpr const char* looped_to_end = "looped_to_end";          // share with a loop that still ran at the end
inline constexpr const char* repeated_span = "repeated_span";          // tokens of the longest one
inline constexpr const char* repeated_share = "repeated_span_share";   // of the length, all of its occurrences
inline constexpr const char* repeated_3grams = "repeated_3grams";      // share that occurred before
inline constexpr const char* compression_ratio = "compression_ratio";  // bytes over bytes after zlib

// Workload::divergence[arm], of sequences against the baseline's; the last four of those that are not identical.
inline constexpr const char* identical = "identical";
inline constexpr const char* edit_share = "edit_share";  // edit distance over the length of the longer one, mean of all
inline constexpr const char* first_divergence_mean = "first_divergence_mean";  // tokens before it
inline constexpr const char* first_divergence_median = "first_divergence_median";
inline constexpr const char* edit_distance_mean = "edit_distance_mean";  // tokens
inline constexpr const char* began_at_tie = "began_at_tie";  // greedy: either arm chose between two equal logits there

}  // namespace replayeval::reports::names
