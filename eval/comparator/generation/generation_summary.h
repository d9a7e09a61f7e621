// From generated sequences to the numbers and intervals of a results file.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "eval/comparator/generation/generator.h"
#include "eval/comparator/perplexity.h"
#include "reports/results.h"

namespace replayeval {

// All sequences of a workload; those of one item are neighbours.
struct GeneratedTexts {
  std::vector<std::vector<GeneratedSequence>> sequences;  // [sequences][arms]
  std::vector<std::vector<std::string>> texts;            // the same, cut at their stop strings
  std::vector<std::int64_t> item;                         // [sequences]
  std::int64_t max_tokens = 0;
  bool greedy = false;  // all of them: ties mean something
};

// Fills arms and deltas with signs of degeneration (metrics/degeneration.h), clustered by item; divergence and
// agreement with how far an arm's sequences are the baseline's; and in data `degeneration_p`: Holm's adjusted p-values
// of an arm's deltas.
void summarise_generation(const RunContext& context, const GeneratedTexts& generated, reports::Workload& result);

}  // namespace replayeval
