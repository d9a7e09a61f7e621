#include "eval/metrics/resampling_units.h"

#include <algorithm>
#include <stdexcept>
#include <unordered_set>

namespace replayeval::metrics {
namespace {

void check_options(const IntervalOptions& options) {
  const auto refuse = [](const char* name, const std::string& value, const char* allowed) {
    throw std::invalid_argument(std::string(name) + " is " + value + ", expected " + allowed);
  };
  if (!(options.confidence > 0.0 && options.confidence < 1.0))
    refuse("confidence", std::to_string(options.confidence), "a number between 0 and 1");
  if (options.bootstrap_samples < 100)
    refuse("bootstrap_samples", std::to_string(options.bootstrap_samples), "at least 100");
  if (options.block_tokens < 1) refuse("block_tokens", std::to_string(options.block_tokens), "at least 1");
}

std::vector<TokenRun> document_runs(std::span<const std::int64_t> document) {
  std::vector<TokenRun> runs;
  std::unordered_set<std::int64_t> seen;
  for (std::size_t i = 0; i < document.size(); ++i) {
    if (i != 0 && document[i] == document[i - 1]) {
      runs.back().end = i + 1;
      continue;
    }
    if (!seen.insert(document[i]).second)
      throw std::invalid_argument("tokens of document " + std::to_string(document[i]) + " are not adjacent: token " +
                                  std::to_string(i) + " returns to it");
    runs.push_back({i, i + 1});
  }
  return runs;
}

// Near-equal contiguous pieces, so that no short remainder becomes a noisy unit of its own.
std::vector<TokenRun> cut_into_blocks(const std::vector<TokenRun>& runs, std::int64_t block_tokens) {
  std::vector<TokenRun> blocks;
  for (const TokenRun& run : runs) {
    const auto length = static_cast<std::int64_t>(run.end - run.begin);
    const std::int64_t pieces = std::max<std::int64_t>(1, (length + block_tokens / 2) / block_tokens);
    for (std::int64_t p = 0; p < pieces; ++p) {
      const auto from = static_cast<std::size_t>(length * p / pieces);
      const auto to = static_cast<std::size_t>(length * (p + 1) / pieces);
      blocks.push_back({run.begin + from, run.begin + to});
    }
  }
  return blocks;
}

}  // namespace

ResamplingUnits resampling_units(std::span<const std::int64_t> document, const IntervalOptions& options) {
  check_options(options);
  if (document.empty()) throw std::invalid_argument("no tokens to average, expected at least 1");
  ResamplingUnits units;
  units.runs = document_runs(document);
  if (static_cast<std::int64_t>(units.runs.size()) >= options.min_documents) {
    units.description = "over " + std::to_string(units.runs.size()) + " " + options.unit;
    return units;
  }
  units.runs = cut_into_blocks(units.runs, options.block_tokens);
  units.description = "over " + std::to_string(units.runs.size()) + (units.runs.size() == 1 ? " block" : " blocks") +
                      " of ~" + std::to_string(options.block_tokens) + " tokens";
  return units;
}

}  // namespace replayeval::metrics
