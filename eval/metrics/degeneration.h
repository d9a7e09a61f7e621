// Signs that generated text has come apart: it runs on, it loops, it repeats itself.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "eval/metrics/repetition.h"
#include "eval/metrics/statistics.h"

namespace replayeval::metrics {

// What counts as a loop: the same span over and over, often enough and long enough not to be a table or a refrain.
struct LoopRule {
  std::int64_t min_repeats = 4;
  std::int64_t min_tokens = 40;  // over all repeats
};

struct Degeneration {
  std::int64_t length = 0;  // tokens generated
  bool truncated = false;   // stopped by the limit, not by an end of sequence or a stop string
  RepeatedSpan repeated;
  std::optional<Loop> loop;  // the longest that the rule counts
  bool loop_to_end = false;  // it still ran when the text stopped
  double repeated_3grams = 0.0;
  double compression_ratio = 1.0;
};

// Of generated tokens (without the prompt) and their text. Without text the compression ratio is of the token ids as
// little-endian 32-bit numbers: comparable between arms, not with ratios of text.
Degeneration degeneration(std::span<const std::int32_t> tokens, std::optional<std::string_view> text, bool truncated,
                          const LoopRule& rule = {});

struct NamedEstimate {
  std::string metric;
  Estimate estimate;
};

// Means over sequences, clustered by item; item[i] names the prompt of sequence i. Metrics, in this order:
//   length, repeated_span (tokens), repeated_span_share (of the length, all occurrences), repeated_3grams,
//   compression_ratio: with the interval of studentised_mean over items;
//   truncated, looped, looped_to_end: shares with the intervals of accuracy() and paired_accuracy().
// Arrays of unequal length or without entries throw std::invalid_argument. options.min_documents and block_tokens are
// not used: items are never cut.
std::vector<NamedEstimate> degeneration_means(std::span<const Degeneration> sequences,
                                              std::span<const std::int64_t> item, const IntervalOptions& options);

// Arm minus baseline, sequence by sequence; means with the interval and p-value of clustered_t over items:
// few texts that loop under one arm or the other make up most of a difference, both tails are long, and t alone holds
// the true one 94 to 95 times in a hundred.
std::vector<NamedEstimate> degeneration_deltas(std::span<const Degeneration> baseline,
                                               std::span<const Degeneration> arm, std::span<const std::int64_t> item,
                                               const IntervalOptions& options);

}  // namespace replayeval::metrics
