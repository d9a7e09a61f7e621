// What is resampled of a text: documents, or blocks of few long ones.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "eval/metrics/statistics.h"

namespace replayeval::metrics {

struct TokenRun {
  std::size_t begin = 0, end = 0;
};

struct ResamplingUnits {
  std::vector<TokenRun> runs;  // adjacent, in text order, none empty; together all tokens
  std::string description;     // "over 83 blocks of ~256 tokens"
};

// document[i] names the document of token i; as IntervalOptions says. Throws std::invalid_argument on no tokens, on
// documents whose tokens are not adjacent and on options out of range.
ResamplingUnits resampling_units(std::span<const std::int64_t> document, const IntervalOptions& options);

}  // namespace replayeval::metrics
